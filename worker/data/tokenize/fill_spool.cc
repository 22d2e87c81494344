#include "worker/data/tokenize/fill_spool.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/digest.h"
#include "common/durable_file.h"
#include "common/file.h"
#include "common/status.h"
#include "worker/data/tokenize/ordered_pipeline.h"
#include "worker/data/tokenize/text_items.h"

namespace atl {
namespace {

using By = ValidationChoice::By;
using Pipeline = OrderedPipeline<TextItem, TokenItem>;

constexpr int kRecordShare = 20;

/// The list of skipped lines in the dataset.
class SkippedLines {
 public:
  static absl::StatusOr<SkippedLines> Open(const std::string& folder, const Journal& journal) {
    SkippedLines list(JoinPath(folder, kSkippedLines), journal.skipped_bytes);
    if (journal.skipped_bytes == 0) {
      ATOLL_RETURN_IF_ERROR(RemoveFile(list.path_));
      return list;
    }
    ATOLL_RETURN_IF_ERROR(list.OpenFile());
    ATOLL_RETURN_IF_ERROR(list.file_.Truncate(list.bytes_));
    return list;
  }

  absl::Status Add(const std::string& path, const BadLine& bad) {
    if (!file_.is_open()) ATOLL_RETURN_IF_ERROR(OpenFile());
    const std::string line = absl::StrCat(path, "\t", bad.line, "\t", bad.why, "\n");
    ATOLL_RETURN_IF_ERROR(file_.WriteAt(bytes_, std::as_bytes(std::span(line))));
    bytes_ += line.size();
    return absl::OkStatus();
  }
  absl::Status Sync() { return file_.is_open() ? file_.Sync() : absl::OkStatus(); }
  uint64_t bytes() const { return bytes_; }

 private:
  SkippedLines(std::string path, uint64_t bytes) : path_(std::move(path)), bytes_(bytes) {}
  absl::Status OpenFile() {
    ATOLL_ASSIGN_OR_RETURN(file_, DurableFile::Open(path_, OpenMode::kCreateOrOpen));
    return absl::OkStatus();
  }

  std::string path_;
  uint64_t bytes_;
  DurableFile file_;
};

class Filler {
 public:
  Filler(const TokenizeOptions& options, const TextInputs& inputs, std::string folder, const Clock& clock,
         const TokenizeEvents& events, Journal& journal, DocumentSpool& spool, SkippedLines skipped)
      : options_(options),
        inputs_(inputs),
        folder_(std::move(folder)),
        clock_(clock),
        events_(events),
        journal_(journal),
        spool_(spool),
        skipped_(std::move(skipped)),
        recorded_at_(clock.Now()) {
    for (size_t i = journal.inputs; i < inputs.files.size(); ++i) {
      total_ += inputs.files[i].bytes;
      known_ = known_ && inputs.files[i].regular;
    }
  }

  absl::Status Take(const TokenItem& item) {
    ATOLL_RETURN_IF_ERROR(item.status);
    for (const BadLine& bad : item.batch.bad_lines) {
      const std::string& path = inputs_.files[item.input].path;
      if (!options_.skip_bad_lines) return BadLineError(path, bad);
      ATOLL_RETURN_IF_ERROR(skipped_.Add(path, bad));
      ++skipped_lines_;
    }
    const std::span<const TokenId> tokens(item.batch.tokens);
    size_t at = 0;
    for (const DocumentEnd& end : item.batch.ends) {
      ATOLL_RETURN_IF_ERROR(spool_.Append(tokens.subspan(at, end.tokens - at)));
      ATOLL_RETURN_IF_ERROR(spool_.EndDocument(HeldOut(item.input, end.hash)));
      at = end.tokens;
    }
    ATOLL_RETURN_IF_ERROR(spool_.Append(tokens.subspan(at)));
    if (events_.read) events_.read(item.position, known_ ? total_ : 0);
    if (!item.ends_input) return absl::OkStatus();
    repeatable_ = repeatable_ && inputs_.files[item.input].regular;
    return clock_.Now() - recorded_at_ < kRecordShare * record_took_ ? absl::OkStatus()
                                                                     : Record(item.input + 1);
  }

  absl::Status Record(size_t inputs) {
    const MonoTime begun = clock_.Now();
    ATOLL_RETURN_IF_ERROR(spool_.Sync());
    ATOLL_RETURN_IF_ERROR(skipped_.Sync());
    journal_.skipped_lines += std::exchange(skipped_lines_, 0);
    if (!repeatable_) return absl::OkStatus();
    journal_.inputs = inputs;
    journal_.inputs_digest = inputs_.Digest(inputs);
    journal_.spool = spool_.state();
    journal_.skipped_bytes = skipped_.bytes();
    ATOLL_RETURN_IF_ERROR(WriteJournal(folder_, journal_));
    recorded_at_ = clock_.Now();
    record_took_ = recorded_at_ - begun;
    return absl::OkStatus();
  }

 private:
  bool HeldOut(size_t input, uint64_t hash) const {
    if (options_.validation.by == By::kHash) return options_.validation.HoldsOut(hash);
    return input >= inputs_.trained;
  }

  const TokenizeOptions& options_;
  const TextInputs& inputs_;
  const std::string folder_;
  const Clock& clock_;
  const TokenizeEvents& events_;
  Journal& journal_;
  DocumentSpool& spool_;
  SkippedLines skipped_;
  uint64_t total_ = 0;
  bool known_ = true;
  bool repeatable_ = true;
  uint64_t skipped_lines_ = 0;  // that the journal does not count yet
  MonoTime recorded_at_;
  Duration record_took_{0};
};

}  // namespace

std::string TextInputs::Digest(uint64_t count) const {
  Sha256 digest;
  for (uint64_t i = 0; i < count; ++i) {
    digest.Update(absl::StrCat(files[i].path, "\n", files[i].bytes, " ", files[i].modified_ns, " ",
                               i < trained ? "trained" : "held out", "\n"));
  }
  return digest.FinishHex();
}

absl::Status FillSpool(const Tokenizer& tokenizer, const TokenizeOptions& options, const TextInputs& inputs,
                       const std::string& folder, const Clock& clock, const TokenizeEvents& events,
                       Journal& journal, DocumentSpool& spool) {
  ATOLL_ASSIGN_OR_RETURN(SkippedLines skipped, SkippedLines::Open(folder, journal));
  Filler filler(options, inputs, folder, clock, events, journal, spool, std::move(skipped));
  const bool hash = options.validation.by == By::kHash;
  TextItems items(inputs.files, journal.inputs, options.format,
                  {.last_cut = [&tokenizer](std::string_view text) { return tokenizer.LastCut(text); },
                   .skip_bad_lines = options.skip_bad_lines,
                   .hash_documents = hash,
                   .any_text = options.any_text,
                   .any_encoding = tokenizer.any_encoding()});
  std::vector<Pipeline::Work> workers;
  for (uint32_t i = 0; i < options.threads; ++i) {
    const auto encoder = std::make_shared<BatchEncoder>(tokenizer, options.field, hash);
    workers.emplace_back([encoder](TextItem item) {
      return TokenItem{.input = item.input,
                       .ends_input = item.ends_input,
                       .position = item.position,
                       .status = item.status,
                       .batch = encoder->Encode(std::move(item.batch))};
    });
  }
  Pipeline pipeline([&items] { return items.Next(); }, std::move(workers));
  while (const std::optional<TokenItem> item = pipeline.Next()) ATOLL_RETURN_IF_ERROR(filler.Take(*item));
  return filler.Record(inputs.files.size());
}

}  // namespace atl
