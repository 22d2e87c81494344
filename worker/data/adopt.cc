#include "worker/data/adopt.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/digest.h"
#include "common/file.h"
#include "common/status.h"
#include "worker/data/token_file.h"
#include "worker/data/token_layout.h"
#include "worker/data/token_view.h"

namespace atl {
namespace {

constexpr char kDescriptionFile[] = "meta.json";
constexpr size_t kPieceTokens = size_t{8} << 20;
constexpr size_t kMaxTokenizerName = 64;

absl::Status CheckAdoptOptions(const AdoptOptions& options) {
  const std::string& name = options.tokenizer;
  const bool plain = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.';
  });
  if (name.empty() || name.size() > kMaxTokenizerName || !plain || !absl::ascii_isalnum(name[0])) {
    return absl::InvalidArgumentError(absl::StrCat(
        "tokenizer '", name, "': expected a name of letters, digits, '-', '_' and '.', for example gpt2"));
  }
  if (options.vocabulary < 1 || options.vocabulary > kMaxVocabulary) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "vocabulary %d: expected the tokenizer's number of tokens, 1 to %d (GPT-2: 50257; Llama-3: 128256)",
        options.vocabulary, kMaxVocabulary));
  }
  if (options.end_of_text && *options.end_of_text >= options.vocabulary) {
    return absl::InvalidArgumentError(
        absl::StrFormat("--end-of-text %d: expected a token of the vocabulary, below %d",
                        *options.end_of_text, options.vocabulary));
  }
  if (FileExists(JoinPath(options.folder, kDescriptionFile))) {
    return absl::AlreadyExistsError(absl::StrCat(
        "folder ", options.folder,
        " already has a meta.json: 'atoll-data inspect' shows it; remove it to adopt the folder again"));
  }
  return absl::OkStatus();
}

struct FileNames {
  std::vector<std::string> train;
  std::string validation;  // empty: there is none
};

absl::StatusOr<FileNames> FindFiles(const AdoptOptions& options) {
  ATOLL_ASSIGN_OR_RETURN(std::vector<std::string> names, ListDir(options.folder));
  std::sort(names.begin(), names.end());
  FileNames found;
  std::vector<std::string> validation, others;
  for (const std::string& name : names) {
    if (!IsTokenFileName(name)) continue;
    if (!options.validation_name.empty() && name == options.validation_name) {
      found.validation = name;
    } else if (absl::StrContains(name, "train")) {
      found.train.push_back(name);
    } else if (absl::StrContains(name, "val")) {
      validation.push_back(name);
    } else {
      others.push_back(name);
    }
  }
  if (found.train.empty()) found.train = std::move(others);
  if (found.train.empty()) {
    return absl::NotFoundError(absl::StrCat("folder ", options.folder,
                                            ": no training shard; expected files named *train*.bin, *.bin or "
                                            "*.ds (llm.c, modded-nanogpt, Megatron, "
                                            "datatrove)"));
  }
  if (!options.validation_name.empty()) {
    if (!found.validation.empty()) return found;
    return absl::NotFoundError(
        absl::StrCat("folder ", options.folder, ": no file ", options.validation_name, " (--validation)"));
  }
  if (validation.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat("folder ", options.folder, ": several validation shards (",
                                                   absl::StrJoin(validation, ", "),
                                                   "); name the one to use with --validation"));
  }
  if (!validation.empty()) found.validation = validation.front();
  return found;
}

/// Opens the files and hashes their parts, with progress over all of them.
class Reader {
 public:
  Reader(const AdoptOptions& options, const AdoptProgress& progress)
      : options_(options), progress_(progress) {}

  absl::Status Open(const std::string& name) {
    ATOLL_ASSIGN_OR_RETURN(TokenFile file,
                           TokenFile::Open(JoinPath(options_.folder, name), options_.vocabulary));
    total_ += file.tokens().bytes().size();
    files_.push_back({name, std::move(file)});
    return absl::OkStatus();
  }

  uint64_t tokens(size_t file) const { return files_[file].file.tokens().size(); }

  TokenFileEntry Describe(size_t file, uint64_t first, uint64_t count) {
    const TokenView& all = files_[file].file.tokens();
    Sha256 digest;
    for (uint64_t at = first; at < first + count; at += kPieceTokens) {
      const TokenView piece = all.subspan(at, std::min<uint64_t>(kPieceTokens, first + count - at));
      digest.Update(piece.bytes());
      done_ += piece.bytes().size();
      progress_(done_, total_);
    }
    TokenFileEntry entry{.name = files_[file].name, .tokens = count, .sha256 = digest.FinishHex()};
    entry.first = first;
    entry.file_tokens = all.size();
    return entry;
  }

 private:
  struct Opened {
    std::string name;
    TokenFile file;
  };
  const AdoptOptions& options_;
  const AdoptProgress& progress_;
  std::vector<Opened> files_;
  uint64_t total_ = 0, done_ = 0;  // bytes
};

/// How many tokens of the last training file are held out when there is no validation file.
absl::StatusOr<uint64_t> HeldOut(const AdoptOptions& options, uint64_t all, uint64_t last, size_t files) {
  const double wanted = std::ceil(static_cast<double>(all) * options.validation_fraction);
  const uint64_t held_out = std::min({static_cast<uint64_t>(wanted), kMaxHeldOutTokens, last});
  if (held_out > 0 && (held_out < last || files > 1)) return held_out;
  return absl::InvalidArgumentError(
      absl::StrFormat("folder %s: %d training tokens are too few to hold out a part of them; add a "
                      "validation shard (*val*.bin)",
                      options.folder, all));
}

}  // namespace

absl::StatusOr<DatasetDescription> Adopt(const AdoptOptions& options, const AdoptProgress& progress) {
  ATOLL_RETURN_IF_ERROR(CheckAdoptOptions(options));
  ATOLL_ASSIGN_OR_RETURN(const FileNames names, FindFiles(options));
  Reader reader(options, progress);
  uint64_t all = 0;
  for (size_t i = 0; i < names.train.size(); ++i) {
    ATOLL_RETURN_IF_ERROR(reader.Open(names.train[i]));
    all += reader.tokens(i);
  }
  const size_t last = names.train.size() - 1;
  DatasetDescription description;
  description.tokenizer = options.tokenizer;
  description.vocabulary = options.vocabulary;
  description.end_of_text = options.end_of_text;
  uint64_t held_out = 0;
  if (names.validation.empty()) {
    ATOLL_ASSIGN_OR_RETURN(held_out, HeldOut(options, all, reader.tokens(last), names.train.size()));
  } else {
    ATOLL_RETURN_IF_ERROR(reader.Open(names.validation));
  }
  for (size_t i = 0; i <= last; ++i) {
    const uint64_t trained = reader.tokens(i) - (i == last ? held_out : 0);
    if (trained > 0) description.train.push_back(reader.Describe(i, 0, trained));
  }
  if (description.train.empty() || (!names.validation.empty() && reader.tokens(last + 1) == 0)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("folder %s: the %s hold no tokens; copy the files again", options.folder,
                        description.train.empty() ? "training shards" : "validation shards"));
  }
  description.validation = names.validation.empty()
                               ? reader.Describe(last, reader.tokens(last) - held_out, held_out)
                               : reader.Describe(last + 1, 0, reader.tokens(last + 1));
  description.fingerprint = Fingerprint(description);
  ATOLL_RETURN_IF_ERROR(
      WriteFileAtomically(JoinPath(options.folder, kDescriptionFile), DescriptionToJson(description)));
  return description;
}

}  // namespace atl
