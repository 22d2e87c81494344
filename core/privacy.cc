#include "core/privacy.h"

#include <algorithm>
#include <cmath>

#include "core/payload_stats.h"

namespace atl {
namespace {

/// The bound as a function of log(alpha - 1).
double EpsilonAt(double rho, double log_delta, double log_excess) {
  const double excess = std::exp(log_excess);
  const double alpha = 1 + excess;
  return rho * alpha + log_excess - std::log(alpha) - (log_delta + std::log(alpha)) / excess;
}

double Largest(const std::map<WorkerName, double>& spent) {
  double largest = 0;
  for (const auto& [worker, rho] : spent) largest = std::max(largest, rho);
  return largest;
}

}  // namespace

double FragmentClipNorm(const PrivacyOptions& options, uint32_t fragments) {
  return options.clip_norm / std::sqrt(static_cast<double>(std::max(fragments, 1U)));
}

void Privatise(double bound, double deviation, std::span<float> delta, GaussianSource* noise) {
  const double norm = VectorNorm(delta);
  if (norm > bound) {
    // A little below, so that rounding to float32 cannot leave the norm above the bound.
    const double scale = bound / norm * (1 - 1e-6);
    for (float& value : delta) value = static_cast<float>(scale * static_cast<double>(value));
  }
  if (deviation > 0) noise->AddTo(delta, deviation);
}

double GaussianRho(double sensitivity, double deviation) {
  const double ratio = sensitivity / deviation;
  return ratio * ratio / 2;
}

double EpsilonOf(double rho, double delta) {
  if (rho <= 0) return 0;
  const double log_delta = std::log(delta);
  const auto at = [&](double x) { return EpsilonAt(rho, log_delta, x); };
  // A grid over alpha - 1 from 1e-9 to 1e12, then golden sections around its best point: any order gives a
  // bound that holds, so at worst the result is a little large.
  constexpr double kFrom = -20.7;
  constexpr double kTo = 27.6;
  constexpr int kPoints = 400;
  const double width = (kTo - kFrom) / kPoints;
  double best = kFrom;
  for (int i = 1; i <= kPoints; ++i) {
    const double x = kFrom + i * width;
    if (at(x) < at(best)) best = x;
  }
  double low = best - width;
  double high = best + width;
  const double golden = (std::sqrt(5.0) - 1) / 2;
  while (high - low > 1e-10) {
    const double left = high - golden * (high - low);
    const double right = low + golden * (high - low);
    (at(left) < at(right) ? high : low) = at(left) < at(right) ? right : left;
  }
  return std::max(0.0, std::min(at(best), at((low + high) / 2)));
}

bool IsFixedSum(const MergeOptions& merge) {
  return merge.method == MergeMethod::kMean && !merge.norm_guard &&
         merge.sparse_average == SparseAverage::kAll;
}

void PrivacyAccountant::Note(const RoundRecord& record) {
  if (record.contributions.empty()) return;  // a restore: what it shows was shown before
  if (record.noise_multiplier <= 0) {
    without_noise_ = true;
    return;
  }
  // Sensitivity C / sqrt(fragments), noise sigma * C.
  const double release = GaussianRho(1, record.noise_multiplier) / fragments_;
  double squares = 0;
  for (const float weight : record.weights) squares += double{weight} * double{weight};
  summed_ = summed_ && IsFixedSum(record.merge) && record.weights.size() == record.contributions.size();
  // A worker may be in a version twice, with a late contribution and its own: both are zero without it.
  std::map<WorkerName, double> weights;
  for (size_t i = 0; i < record.contributions.size(); ++i) {
    const WorkerName& worker = record.contributions[i].key.worker;
    local_[worker] += release;
    if (summed_ && squares > 0) weights[worker] += double{record.weights[i]};
  }
  for (const auto& [worker, weight] : weights) published_[worker] += release * weight * weight / squares;
}

double PrivacyAccountant::local_rho() const { return Largest(local_); }

std::optional<double> PrivacyAccountant::published_rho() const {
  if (!summed_) return std::nullopt;
  return Largest(published_);
}

double PlannedLocalRho(const PrivacyOptions& options, uint64_t rounds) {
  return options.noisy() ? static_cast<double>(rounds) * GaussianRho(1, options.noise_multiplier) : 0;
}

double PlannedPublishedRho(const PrivacyOptions& options, uint64_t rounds, uint32_t workers) {
  return PlannedLocalRho(options, rounds) / std::max(workers, 1U);
}

}  // namespace atl
