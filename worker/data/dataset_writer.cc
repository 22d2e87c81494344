#include "worker/data/dataset_writer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/file.h"
#include "common/status.h"

namespace atl {
namespace {

constexpr char kHeldOutName[] = "val.bin";

}  // namespace

DatasetWriter::DatasetWriter(DatasetWriterOptions options)
    : options_(std::move(options)), width_(WidthFor(options_.vocabulary)) {
  description_.tokenizer = options_.tokenizer;
  description_.vocabulary = options_.vocabulary;
  description_.end_of_text = options_.end_of_text;
}

absl::Status DatasetWriter::AddTrain(std::span<const TokenId> tokens) {
  while (!tokens.empty()) {
    if (!train_) {
      train_name_ = absl::StrFormat("train_%03d.bin", description_.train.size());
      ATOLL_ASSIGN_OR_RETURN(TokenFileWriter file,
                             TokenFileWriter::Create(JoinPath(options_.folder, train_name_), width_));
      train_.emplace(std::move(file));
    }
    const size_t size = std::min<uint64_t>(tokens.size(), options_.tokens_per_file - train_->tokens());
    ATOLL_RETURN_IF_ERROR(train_->Append(tokens.first(size)));
    tokens = tokens.subspan(size);
    if (train_->tokens() == options_.tokens_per_file) ATOLL_RETURN_IF_ERROR(EndTrainFile());
  }
  return absl::OkStatus();
}

absl::Status DatasetWriter::EndTrainFile() {
  TokenFileEntry entry{.name = train_name_, .tokens = train_->tokens(), .sha256 = ""};
  ATOLL_ASSIGN_OR_RETURN(entry.sha256, train_->Finish());
  description_.train.push_back(std::move(entry));
  train_.reset();
  return absl::OkStatus();
}

absl::Status DatasetWriter::AddHeldOut(std::span<const TokenId> tokens) {
  if (tokens.empty()) return absl::OkStatus();
  if (!held_out_) {
    ATOLL_ASSIGN_OR_RETURN(TokenFileWriter file,
                           TokenFileWriter::Create(JoinPath(options_.folder, kHeldOutName), width_));
    held_out_.emplace(std::move(file));
  }
  return held_out_->Append(tokens);
}

absl::StatusOr<DatasetDescription> DatasetWriter::Finish() {
  if (train_) ATOLL_RETURN_IF_ERROR(EndTrainFile());
  if (description_.train.empty() || !held_out_) {
    return absl::InvalidArgumentError(description_.train.empty() ? "there is no text to train on"
                                                                 : "no text is held out");
  }
  description_.validation = {.name = kHeldOutName, .tokens = held_out_->tokens(), .sha256 = ""};
  ATOLL_ASSIGN_OR_RETURN(description_.validation.sha256, held_out_->Finish());
  description_.fingerprint = Fingerprint(description_);
  ATOLL_RETURN_IF_ERROR(
      WriteFileAtomically(JoinPath(options_.folder, "meta.json"), DescriptionToJson(description_)));
  return description_;
}

}  // namespace atl
