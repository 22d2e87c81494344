#include "tests/integration/crash/serial_model.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "common/content_hash.h"
#include "common/status.h"

namespace atl {
namespace {

ContentHash HashOf(const std::vector<float>& values) {
  const Hash128 hash = HashBytes(std::as_bytes(std::span(values)));
  return {.low = hash.low, .high = hash.high};
}

absl::Status Wrong(Version version, const std::string& what) {
  return absl::DataLossError(absl::StrFormat("version %d: %s", version.value(), what));
}

}  // namespace

SerialModel::SerialModel(const SyntheticRun& run) : run_(run) {
  versions_.push_back({.theta = run.seed, .momentum = std::vector<float>(run.seed.size(), 0.0F)});
}

SerialModel::Contents SerialModel::Average(const RoundRecord& record) const {
  Contents next = versions_.back();
  // Weights by tokens; one that came late for its own round has less (docs/reference/configuration.md,
  // staleness_limit).
  const auto weight_of = [&](const Contribution& c) {
    const uint64_t late = record.version.value() - 1 - c.key.base.value();
    return static_cast<double>(run_.TokensOf(c.key.worker)) / (1.0 + static_cast<double>(late) / 4);
  };
  double all = 0;
  for (const Contribution& c : record.contributions) all += weight_of(c);
  std::vector<float> mean(next.theta.size(), 0.0F);
  // In the order of the record: by base, then by worker's name.
  for (const Contribution& c : record.contributions) {
    const auto weight = static_cast<float>(weight_of(c) / all);
    const std::vector<float> delta = run_.Contribution(c.key.worker, c.key.base);
    for (size_t i = 0; i < mean.size(); ++i) mean[i] = mean[i] + weight * delta[i];
  }
  const auto eta = static_cast<float>(run_.options.outer.learning_rate);
  const auto mu = static_cast<float>(run_.options.outer.momentum);
  for (size_t i = 0; i < mean.size(); ++i) {
    next.momentum[i] = mu * next.momentum[i] + mean[i];
    next.theta[i] = next.theta[i] - eta * (mean[i] + mu * next.momentum[i]);
  }
  return next;
}

absl::Status SerialModel::Step(const RoundRecord& record, const std::map<std::string, Version>& checkpoints) {
  const Version version = record.version;
  if (record.contributions.empty()) {
    // "restored from checkpoint 'NAME'"
    const std::vector<std::string> parts = absl::StrSplit(record.close_reason, '\'');
    const auto from = parts.size() == 3 ? checkpoints.find(parts[1]) : checkpoints.end();
    if (from == checkpoints.end()) return Wrong(version, "no contributions: " + record.close_reason);
    versions_.push_back(versions_[from->second.value()]);
    return absl::OkStatus();
  }
  for (const Contribution& c : record.contributions) {
    const uint64_t base = c.key.base.value();
    if (base >= version.value() || base + 1 + run_.options.round.staleness_limit < version.value())
      return Wrong(version, "counts a contribution on another base");
    if (c.key.epoch != record.epoch) return Wrong(version, "counts a contribution of another epoch");
    // In this round or in an earlier one.
    if (!counted_.insert({c.key.epoch, c.key.base, c.key.worker}).second)
      return Wrong(version, c.key.worker + " counts twice");
    if (c.tokens != run_.TokensOf(c.key.worker)) return Wrong(version, c.key.worker + " is capped");
  }
  versions_.push_back(Average(record));
  return absl::OkStatus();
}

absl::Status SerialModel::Follow(const std::vector<RoundRecord>& records,
                                 const std::map<std::string, Version>& checkpoints,
                                 const std::map<Promises::Published, ContentHash>& published) {
  if (records.size() < records_.size()) return Wrong(Version(records.size()), "records are gone");
  for (size_t i = 0; i < records_.size(); ++i) {
    if (!(records[i] == records_[i]))
      return Wrong(records[i].version, "its record is another one than before");
  }
  for (size_t i = records_.size(); i < records.size(); ++i) {
    const RoundRecord& record = records[i];
    if (record.version.value() != i + 1) return Wrong(record.version, "versions are not dense");
    ATOLL_RETURN_IF_ERROR(Step(record, checkpoints));
    if (HashOf(theta()) != record.parameters)
      return Wrong(record.version, "parameters differ from the serial model");
    if (HashOf(momentum()) != record.state)
      return Wrong(record.version, "momentum differs from the serial model");
    const auto pulled = published.find({record.epoch, record.version});
    if (pulled != published.end() && pulled->second != record.published) {
      return Wrong(record.version, "was published with other bits than it has now");
    }
  }
  records_ = records;
  return absl::OkStatus();
}

}  // namespace atl
