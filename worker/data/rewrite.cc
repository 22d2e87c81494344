#include "worker/data/rewrite.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/status.h"
#include "core/token_format.h"
#include "worker/data/dataset.h"
#include "worker/data/dataset_writer.h"
#include "worker/data/output_folder.h"

namespace atl {
namespace {

constexpr uint64_t kCopiedTokens = uint64_t{1} << 20;

absl::StatusOr<std::vector<Dataset>> OpenAll(const std::vector<std::string>& folders) {
  std::vector<Dataset> sets;
  for (const std::string& folder : folders) {
    ATOLL_ASSIGN_OR_RETURN(Dataset set, Dataset::Open(folder, {kMaxVocabulary, 1, ""}));
    sets.push_back(std::move(set));
    const DatasetDescription& first = sets.front().description();
    const DatasetDescription& last = sets.back().description();
    if (first.tokenizer != last.tokenizer || first.vocabulary != last.vocabulary) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "dataset folder %s has the tokenizer %s (vocabulary %d), and %s has %s (vocabulary %d); tokenize "
          "one "
          "of the texts again",
          folders.front(), first.tokenizer, first.vocabulary, folder, last.tokenizer, last.vocabulary));
    }
  }
  return sets;
}

class Copier {
 public:
  Copier(DatasetWriter& writer, uint64_t trained, uint64_t total, const RewriteProgress& progress)
      : writer_(writer), trained_(trained), total_(total), progress_(progress) {}

  absl::Status Copy(const Dataset& set) {
    ATOLL_RETURN_IF_ERROR(CopyText(
        set.train_tokens(), [&](uint64_t at, std::span<TokenId> out) { return set.ReadTrain(at, out); },
        false));
    return CopyText(
        set.validation_tokens(),
        [&](uint64_t at, std::span<TokenId> out) { return set.ReadValidation(at, out); }, true);
  }

 private:
  template <typename Read>
  absl::Status CopyText(uint64_t size, Read read, bool held_out) {
    for (uint64_t at = 0; at < size; at += piece_.size()) {
      piece_.resize(std::min(kCopiedTokens, size - at));
      ATOLL_RETURN_IF_ERROR(read(at, piece_));
      const std::span<const TokenId> tokens(piece_);
      // Without a share, trained_ is 0 and the folders decide.
      uint64_t left = held_out ? 0 : tokens.size();
      if (trained_ > 0) left = std::min<uint64_t>(tokens.size(), trained_ - std::min(done_, trained_));
      ATOLL_RETURN_IF_ERROR(writer_.AddTrain(tokens.first(left)));
      ATOLL_RETURN_IF_ERROR(writer_.AddHeldOut(tokens.subspan(left)));
      done_ += tokens.size();
      progress_(done_, total_);
    }
    return absl::OkStatus();
  }

  DatasetWriter& writer_;
  const uint64_t trained_, total_;
  const RewriteProgress& progress_;
  std::vector<TokenId> piece_;
  uint64_t done_ = 0;
};

}  // namespace

absl::StatusOr<DatasetDescription> Rewrite(const RewriteOptions& options, const RewriteProgress& progress) {
  if (options.tokens_per_file < 1 || options.tokens_per_file > kMaxTokensPerFile) {
    return absl::InvalidArgumentError(absl::StrFormat("tokens of a file: %d; expected 1 to %d",
                                                      options.tokens_per_file, kMaxTokensPerFile));
  }
  ATOLL_ASSIGN_OR_RETURN(const std::vector<Dataset> sets, OpenAll(options.folders));
  uint64_t total = 0;
  for (const Dataset& set : sets) total += set.train_tokens() + set.validation_tokens();
  uint64_t trained = 0;
  if (options.held_out_share) {
    const auto held_out =
        static_cast<uint64_t>(std::ceil(static_cast<double>(total) * *options.held_out_share));
    if (held_out == 0 || held_out + 2 > total) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "%d tokens are too few to train on and to hold out %g of", total, *options.held_out_share));
    }
    trained = total - held_out;
  }
  ATOLL_ASSIGN_OR_RETURN(OutputFolder folder,
                         OutputFolder::Create(options.out, PartialFolder::LeftOver::kRemove));
  const DatasetDescription& first = sets.front().description();
  // Known only if it is the same everywhere.
  std::optional<TokenId> end_of_text = first.end_of_text;
  for (const Dataset& set : sets) {
    if (set.description().end_of_text != end_of_text) end_of_text.reset();
  }
  DatasetWriter writer({.folder = folder.partial(),
                        .tokenizer = first.tokenizer,
                        .vocabulary = first.vocabulary,
                        .end_of_text = end_of_text,
                        .tokens_per_file = options.tokens_per_file});
  Copier copier(writer, trained, total, progress);
  for (const Dataset& set : sets) ATOLL_RETURN_IF_ERROR(copier.Copy(set));
  ATOLL_ASSIGN_OR_RETURN(DatasetDescription description, writer.Finish());
  ATOLL_RETURN_IF_ERROR(folder.Publish());
  return description;
}

}  // namespace atl
