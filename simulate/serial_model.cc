#include "simulate/serial_model.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/status.h"

namespace atl {
namespace {

ContentHash HashOf(const std::vector<std::vector<float>>& vectors) {
  std::vector<Hash128> blocks;
  uint64_t bytes = 0;
  for (const std::vector<float>& vector : vectors) {
    const auto raw = std::as_bytes(std::span(vector));
    for (size_t at = 0; at < raw.size(); at += kHashBlockBytes) {
      blocks.push_back(HashBlock(raw.subspan(at, std::min(kHashBlockBytes, raw.size() - at))));
    }
    bytes += raw.size();
  }
  const Hash128 hash = CombineBlocks(blocks, bytes);
  return {.low = hash.low, .high = hash.high};
}

std::vector<float> Decoded(CodecKind kind, const std::string& payload, size_t elements) {
  std::vector<float> values(elements);
  CodecFor(kind).DecodeRange(std::as_bytes(std::span(payload)), elements, 0, values);
  return values;
}

}  // namespace

void SerialModel::Seed(FragmentId fragment, std::vector<float> theta) {
  Fragment& made = fragments_[fragment] = Fragment();
  made.published = theta;
  made.theta = std::move(theta);
}

absl::Status SerialModel::CheckWeights(const RoundRecord& record) const {
  double sum = 0;
  std::vector<double> weights;
  for (const Contribution& contribution : record.contributions) {
    const auto tokens = static_cast<double>(contribution.tokens);
    double weight = weighting_ == MergeWeighting::kUniform ? 1 : tokens;
    const uint64_t behind = record.version.value() - 1 - contribution.key.base.value();
    weight /= 1 + static_cast<double>(behind) / 4;
    weights.push_back(weight);
    sum += weight;
  }
  for (size_t i = 0; i < weights.size(); ++i) {
    if (record.weights[i] == static_cast<float>(weights[i] / sum)) continue;
    return absl::FailedPreconditionError(
        absl::StrFormat("version %d of fragment %d: the weight of %s is %.9g and not %.9g",
                        record.version.value(), record.fragment.value(), record.contributions[i].key.worker,
                        record.weights[i], static_cast<float>(weights[i] / sum)));
  }
  return absl::OkStatus();
}

absl::Status SerialModel::Apply(const RoundRecord& record,
                                const std::map<ContributionKey, std::string>& payloads) {
  Fragment& fragment = fragments_[record.fragment];
  if (!std::ranges::is_sorted(record.contributions, {}, &Contribution::key)) {
    return absl::FailedPreconditionError(
        absl::StrFormat("version %d of fragment %d does not sum in the order of keys", record.version.value(),
                        record.fragment.value()));
  }
  ATOLL_RETURN_IF_ERROR(CheckWeights(record));
  std::vector<float> mean(fragment.theta.size());
  for (size_t i = 0; i < record.contributions.size(); ++i) {
    const Contribution& contribution = record.contributions[i];
    const std::vector<float> values =
        Decoded(contribution.codec, payloads.at(contribution.key), fragment.theta.size());
    for (size_t e = 0; e < mean.size(); ++e) {
      const float scaled = record.weights[i] * values[e];
      mean[e] = mean[e] + scaled;
    }
  }
  Step(record.outer, mean, fragment);
  Publish(fragment);
  const bool same = HashOf({fragment.theta}) == record.parameters && HashOf(fragment.state) == record.state &&
                    HashOf({fragment.published}) == record.published;
  if (same) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrFormat("version %d of fragment %d is not what its %d contributions make",
                      record.version.value(), record.fragment.value(), record.contributions.size()));
}

void SerialModel::Step(const OuterOptions& outer, const std::vector<float>& mean, Fragment& fragment) {
  const auto eta = static_cast<float>(outer.learning_rate);
  const auto mu = static_cast<float>(outer.momentum);
  ++fragment.steps;
  if (outer.optimizer == OuterOptimizerKind::kNesterov) {
    fragment.state.resize(1, std::vector<float>(mean.size()));
    for (size_t e = 0; e < mean.size(); ++e) {
      float& v = fragment.state[0][e];
      v = mu * v + mean[e];
      const float ahead = mean[e] + mu * v;
      fragment.theta[e] = fragment.theta[e] - eta * ahead;
    }
    return;
  }
  // Delayed Nesterov with c = 0: m moves, and is used, in every N-th step.
  fragment.state.resize(2, std::vector<float>(mean.size()));
  const auto n = static_cast<float>(outer.delay);
  const bool moves = fragment.steps % outer.delay == 0;
  for (size_t e = 0; e < mean.size(); ++e) {
    float& m = fragment.state[0][e];
    float& sum = fragment.state[1][e];
    sum = sum + mean[e];
    float step = mean[e] / n;
    if (moves) {
      m = mu * m + sum / n;
      sum = 0;
      step = step + mu * m;
    }
    fragment.theta[e] = fragment.theta[e] - eta * step;
  }
}

void SerialModel::Publish(Fragment& fragment) const {
  if (!delta_.has_value()) {
    fragment.published = fragment.theta;
    return;
  }
  const Codec& codec = CodecFor(*delta_);
  std::vector<float> difference(fragment.theta.size());
  for (size_t e = 0; e < difference.size(); ++e) difference[e] = fragment.theta[e] - fragment.published[e];
  std::string payload(codec.EncodedSize(difference.size()), '\0');
  codec.Encode(difference, std::as_writable_bytes(std::span(payload)));
  const std::vector<float> sent = Decoded(*delta_, payload, difference.size());
  for (size_t e = 0; e < sent.size(); ++e) fragment.published[e] = fragment.published[e] + sent[e];
}

}  // namespace atl
