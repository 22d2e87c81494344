#include "worker/data/batches.h"

#include <algorithm>
#include <utility>

#include "common/status.h"

namespace atl {
namespace {

void Clear(uint64_t tokens, const SequenceOptions& sequences, Batch& batch) {
  const bool isolated = sequences.end_of_document.has_value();
  for (std::vector<int64_t>* const values : {&batch.inputs, &batch.targets}) {
    values->clear();
    values->reserve(tokens);
  }
  for (std::vector<int64_t>* const values : {&batch.documents, &batch.positions}) {
    values->clear();
    if (isolated) values->reserve(tokens);
  }
}

/// Divides the row that was appended last into documents.
void AppendDocuments(TokenId end, size_t row_size, Batch& batch) {
  const size_t begin = batch.inputs.size() - row_size;
  int64_t document = 0, position = 0;
  for (size_t i = begin; i < batch.inputs.size(); ++i) {
    batch.documents.push_back(document);
    batch.positions.push_back(position++);
    if (batch.inputs[i] != end) continue;
    batch.targets[i] = kIgnoredTarget;
    ++document;
    position = 0;
  }
}

// `window` has context+1 tokens.
void AppendWindow(std::span<const TokenId> window, const SequenceOptions& sequences, Batch& batch) {
  batch.inputs.insert(batch.inputs.end(), window.begin(), window.end() - 1);
  batch.targets.insert(batch.targets.end(), window.begin() + 1, window.end());
  if (sequences.end_of_document) AppendDocuments(*sequences.end_of_document, window.size() - 1, batch);
}

std::vector<uint32_t> Weights(const TrainingData& data) {
  std::vector<uint32_t> weights;
  for (const TrainingData::Part& part : data.parts()) weights.push_back(part.weight);
  return weights;
}

}  // namespace

uint64_t Batch::counted_targets() const {
  if (documents.empty()) return targets.size();
  return targets.size() - static_cast<uint64_t>(std::ranges::count(targets, kIgnoredTarget));
}

TrainingSamples::TrainingSamples(std::shared_ptr<const TrainingData> data, const SequenceOptions& sequences,
                                 uint64_t seed, uint32_t partition, uint32_t partitions)
    : data_(std::move(data)),
      sequences_(sequences),
      partition_(partition),
      partitions_(partitions),
      window_(size_t{sequences.context} + 1) {
  if (data_->is_mixture()) mixture_.emplace(Weights(*data_), seed);
  for (const TrainingData::Part& part : data_->parts()) {
    SampleIndex index = part.dataset.Samples(sequences.context, sequences.bounds);
    const auto number = static_cast<uint32_t>(parts_.size());
    const SampleOrder order(index.size(), mixture_ ? MixtureOrder::PartSeed(seed, number) : seed);
    parts_.push_back({.index = std::move(index), .order = order});
  }
}

SamplePlace TrainingSamples::At(uint64_t position) const {
  const uint64_t of_run = position * partitions_ + partition_;
  const MixtureOrder::Place place =
      mixture_ ? mixture_->At(of_run) : MixtureOrder::Place{.part = 0, .position = of_run};
  const Part& part = parts_[place.part];
  const uint64_t sample = part.order.At(place.position);
  return {.part = place.part, .sample = sample, .first_token = part.index.FirstToken(sample)};
}

absl::Status TrainingSamples::Read(uint64_t position, uint32_t sequences, Batch& batch) {
  Clear(uint64_t{sequences} * sequences_.context, sequences_, batch);
  for (uint32_t i = 0; i < sequences; ++i) {
    const SamplePlace place = At(position + i);
    ATOLL_RETURN_IF_ERROR(data_->parts()[place.part].dataset.ReadTrain(place.first_token, window_));
    AppendWindow(window_, sequences_, batch);
  }
  return absl::OkStatus();
}

ValidationSamples::ValidationSamples(std::shared_ptr<const TrainingData> data,
                                     const SequenceOptions& sequences)
    : data_(std::move(data)), sequences_(sequences), window_(size_t{sequences.context} + 1) {
  for (const uint32_t weight : Weights(*data_)) weights_ += weight;
  Restart();
}

void ValidationSamples::Restart() {
  turns_.assign(data_->parts().size(), Turn());
  next_ = 0;
}

std::optional<ValidationSamples::Window> ValidationSamples::Next() {
  const std::vector<TrainingData::Part>& parts = data_->parts();
  size_t chosen = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto credit = [&](size_t part) { return turns_[part].credit + int64_t{parts[part].weight}; };
    if (credit(i) > credit(chosen)) chosen = i;
  }
  const uint64_t window = turns_[chosen].read;
  if (window >= SampleCount(parts[chosen].dataset.validation_tokens(), sequences_.context)) {
    return std::nullopt;
  }
  for (size_t i = 0; i < parts.size(); ++i) turns_[i].credit += int64_t{parts[i].weight};
  turns_[chosen].credit -= weights_;
  ++turns_[chosen].read;
  ++next_;
  return Window{.part = chosen, .number = window};
}

absl::StatusOr<uint32_t> ValidationSamples::Read(uint64_t first, uint32_t count, Batch& batch) {
  Clear(uint64_t{count} * sequences_.context, sequences_, batch);
  if (first < next_) Restart();
  uint32_t read = 0;
  while (read < count) {
    const bool wanted = next_ >= first;
    const std::optional<Window> window = Next();
    if (!window) break;
    if (!wanted) continue;
    const Dataset& dataset = data_->parts()[window->part].dataset;
    ATOLL_RETURN_IF_ERROR(dataset.ReadValidation(window->number * sequences_.context, window_));
    AppendWindow(window_, sequences_, batch);
    ++read;
  }
  return read;
}

}  // namespace atl
