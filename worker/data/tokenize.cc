#include "worker/data/tokenize.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/durable_file.h"
#include "common/file.h"
#include "common/partial_file.h"
#include "common/status.h"
#include "worker/data/text_source.h"
#include "worker/data/token_file_writer.h"

namespace atl {
namespace {

constexpr size_t kPieceBytes = size_t{1} << 20;
// Text that waits for the end of a piece. No real text has so much without a line end before a letter; one
// that does is cut.
constexpr size_t kMostWaiting = size_t{16} << 20;
constexpr char kMeta[] = "meta.json";
constexpr char kSpool[] = "tokens.tmp";

// Tokens on their way: only when all are there is it known where the held-out part begins. Its lock keeps
// other calls out of the folder.
class Spool {
 public:
  static absl::StatusOr<Spool> Create(const std::string& folder) {
    auto held = PartialFile::Create(JoinPath(folder, kMeta), JoinPath(folder, kSpool));
    if (absl::IsFailedPrecondition(held.status())) {
      return absl::FailedPreconditionError(
          absl::StrFormat("folder %s is in use: %s", folder, std::string(held.status().message())));
    }
    ATOLL_RETURN_IF_ERROR(held.status());
    ATOLL_ASSIGN_OR_RETURN(DurableFile file, DurableFile::Open((*held)->partial(), OpenMode::kOpenExisting));
    return Spool(*std::move(held), std::move(file));
  }
  Spool(Spool&&) noexcept = default;
  Spool& operator=(Spool&&) = delete;

  absl::Status Append(std::span<const TokenId> tokens) {
    ATOLL_RETURN_IF_ERROR(file_.WriteAt(tokens_ * sizeof(TokenId), std::as_bytes(tokens)));
    tokens_ += tokens.size();
    return absl::OkStatus();
  }
  absl::Status Read(uint64_t first, std::span<TokenId> out) const {
    return file_.ReadAt(first * sizeof(TokenId), std::as_writable_bytes(out));
  }
  uint64_t tokens() const { return tokens_; }

 private:
  Spool(std::unique_ptr<PartialFile> held, DurableFile file)
      : held_(std::move(held)), file_(std::move(file)) {}
  std::unique_ptr<PartialFile> held_;  // never published: its end removes it
  DurableFile file_;
  uint64_t tokens_ = 0;
};

absl::Status CheckNoDataset(const std::string& folder) {
  if (!FileExists(JoinPath(folder, kMeta))) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrCat(
      "folder ", folder, " already holds a dataset (meta.json); remove it or name another folder"));
}

absl::Status CheckOptions(const TokenizeOptions& options) {
  if (options.inputs.empty()) return absl::InvalidArgumentError("no text file given");
  if (!(options.validation_fraction > 0 && options.validation_fraction < 1)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "the held-out fraction is %g; it must be above 0 and below 1", options.validation_fraction));
  }
  return CheckNoDataset(options.folder);
}

/// A folder that holds something else stays as it is. What a killed call left behind is written over: it
/// ends with the spool's removal, so the spool is there. A disk's own folder does not count.
absl::Status CheckFolder(const std::string& folder) {
  const auto names = ListDir(folder);
  if (!names.ok()) return absl::OkStatus();  // it is not there, or creating it will say what is wrong
  const bool left_over = std::ranges::find(*names, kSpool) != names->end();
  for (const std::string& name : *names) {
    const bool ours = name == kSpool || name == "val.bin" || name.starts_with("train_") ||
                      name.starts_with("val.bin.") || name.starts_with("meta.json.");
    if ((left_over && ours) || name == "lost+found") continue;
    return absl::AlreadyExistsError(
        absl::StrFormat("folder %s holds other files (%s): a dataset gets a folder of its own; name a new or "
                        "empty one with --out, for example %s",
                        folder, name, JoinPath(folder, "tokens")));
  }
  return absl::OkStatus();
}

/// Makes a folder, and those above it that are missing. A call that fails takes them away again.
class NewFolder {
 public:
  static absl::StatusOr<NewFolder> Create(const std::string& path) {
    NewFolder folder;
    for (std::filesystem::path at = path; !at.empty() && !FileExists(at); at = at.parent_path()) {
      folder.made_.push_back(at);
    }
    ATOLL_RETURN_IF_ERROR(CreateDirs(path));
    return folder;
  }
  ~NewFolder() {
    // Only as long as they are empty.
    for (const std::string& path : made_) {
      if (::rmdir(path.c_str()) != 0) return;
    }
  }
  NewFolder(NewFolder&& other) noexcept : made_(std::exchange(other.made_, {})) {}
  NewFolder& operator=(NewFolder&&) = delete;
  void Keep() { made_.clear(); }

 private:
  NewFolder() = default;
  std::vector<std::string> made_;  // the innermost first
};

absl::StatusOr<std::vector<TextSource>> OpenInputs(const TokenizeOptions& options) {
  std::vector<TextSource> sources;
  for (const std::string& path : options.inputs) {
    ATOLL_ASSIGN_OR_RETURN(TextSource source, TextSource::Open(path));
    sources.push_back(std::move(source));
  }
  return sources;
}

absl::Status FillSpool(const Tokenizer& tokenizer, std::vector<TextSource> sources,
                       const TokenizeProgress& progress, Spool& spool) {
  uint64_t total = 0;
  bool known = true;
  for (const TextSource& source : sources) {
    total += source.size();
    known = known && source.size() > 0;
  }
  uint64_t before = 0;
  std::string text;
  std::string waiting;
  std::vector<TokenId> tokens;
  for (TextSource& source : sources) {
    while (true) {
      ATOLL_RETURN_IF_ERROR(source.Read(kPieceBytes, text));
      if (text.empty()) break;
      waiting += text;
      if (waiting.size() < kMostWaiting) {
        waiting.erase(0, tokenizer.EncodePrefix(waiting, tokens));
      } else {
        tokenizer.Encode(waiting, tokens);
        waiting.clear();
      }
      ATOLL_RETURN_IF_ERROR(spool.Append(tokens));
      progress(before + source.position(), known ? total : 0);
    }
    tokenizer.Encode(waiting, tokens);
    waiting.clear();
    ATOLL_RETURN_IF_ERROR(spool.Append(tokens));
    before += source.size() > 0 ? source.size() : source.position();
  }
  return absl::OkStatus();
}

absl::StatusOr<TokenFileEntry> WriteFile(const Spool& spool, TokenWidth width, const std::string& folder,
                                         const std::string& name, uint64_t begin, uint64_t end) {
  ATOLL_ASSIGN_OR_RETURN(TokenFileWriter writer, TokenFileWriter::Create(JoinPath(folder, name), width));
  std::vector<TokenId> piece;
  for (uint64_t at = begin; at < end; at += piece.size()) {
    piece.resize(std::min<uint64_t>(kPieceBytes, end - at));
    ATOLL_RETURN_IF_ERROR(spool.Read(at, piece));
    ATOLL_RETURN_IF_ERROR(writer.Append(piece));
  }
  TokenFileEntry entry{.name = name, .tokens = writer.tokens(), .sha256 = ""};
  ATOLL_ASSIGN_OR_RETURN(entry.sha256, writer.Finish());
  return entry;
}

}  // namespace

absl::StatusOr<DatasetDescription> Tokenize(const Tokenizer& tokenizer, const TokenizeOptions& options,
                                            const TokenizeProgress& progress) {
  ATOLL_RETURN_IF_ERROR(CheckOptions(options));
  ATOLL_ASSIGN_OR_RETURN(std::vector<TextSource> sources, OpenInputs(options));
  ATOLL_RETURN_IF_ERROR(CheckFolder(options.folder));
  ATOLL_ASSIGN_OR_RETURN(NewFolder folder, NewFolder::Create(options.folder));
  ATOLL_ASSIGN_OR_RETURN(Spool spool, Spool::Create(options.folder));
  // Another call may have ended since.
  ATOLL_RETURN_IF_ERROR(CheckNoDataset(options.folder));
  ATOLL_RETURN_IF_ERROR(FillSpool(tokenizer, std::move(sources), progress, spool));

  const auto held_out =
      static_cast<uint64_t>(std::ceil(static_cast<double>(spool.tokens()) * options.validation_fraction));
  if (spool.tokens() < 4 || held_out + 2 > spool.tokens()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("the text has %d tokens: too few to train on and to hold out %g of", spool.tokens(),
                        options.validation_fraction));
  }
  const uint64_t trained = spool.tokens() - held_out;
  DatasetDescription description;
  description.tokenizer = std::string(tokenizer.name());
  description.vocabulary = tokenizer.vocabulary();
  const TokenWidth width = WidthFor(tokenizer.vocabulary());
  for (uint64_t begin = 0; begin < trained; begin += options.tokens_per_file) {
    const std::string name = absl::StrFormat("train_%03d.bin", description.train.size());
    ATOLL_ASSIGN_OR_RETURN(TokenFileEntry entry,
                           WriteFile(spool, width, options.folder, name, begin,
                                     std::min(trained, begin + options.tokens_per_file)));
    description.train.push_back(std::move(entry));
  }
  ATOLL_ASSIGN_OR_RETURN(description.validation,
                         WriteFile(spool, width, options.folder, "val.bin", trained, spool.tokens()));
  description.fingerprint = Fingerprint(description);
  ATOLL_RETURN_IF_ERROR(WriteFileAtomically(JoinPath(options.folder, kMeta), DescriptionToJson(description)));
  folder.Keep();
  return description;
}

}  // namespace atl
