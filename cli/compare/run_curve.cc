#include "cli/compare/run_curve.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/match.h"

namespace atl {
namespace {

constexpr char kValidation[] = "validation/loss";
constexpr char kTraining[] = "train/loss";

}  // namespace

double XOf(const CurvePoint& point, CompareAxis axis) {
  switch (axis) {
    case CompareAxis::kTokens:
      return point.tokens;
    case CompareAxis::kSteps:
      return point.steps;
    case CompareAxis::kRounds:
      return point.rounds;
    case CompareAxis::kTime:
      return point.seconds;
    case CompareAxis::kBytes:
      return point.bytes;
  }
  return point.tokens;
}

void CurveBuilder::Add(const v1::MetricPoint& point) {
  const double unix_s = static_cast<double>(point.unix_nanos()) * 1e-9;
  first_s_ = any_ ? std::min(first_s_, unix_s) : unix_s;
  any_ = true;
  const auto tokens = static_cast<double>(point.committed_tokens());
  const Loss loss = {.value = point.value(), .committed_tokens = tokens, .unix_s = unix_s};
  const std::string& name = point.name();
  if (name == kValidation) {
    validation_[point.version()] = loss;
    return;
  }
  if (absl::StartsWith(name, "fragment/") && absl::EndsWith(name, "/round/payload_bytes")) {
    other_bytes_[unix_s] += point.value();
    return;
  }
  const bool of_round = absl::StartsWith(name, "round/") || absl::StartsWith(name, "train/");
  if (!of_round && name != "worker/steps") return;
  Round& round = rounds_[point.version()];
  round.closed = true;
  round.committed_tokens = tokens;
  round.unix_s = unix_s;
  if (name == kTraining) training_[point.version()] = loss;
  if (name == "round/tokens") round.tokens = point.value();
  if (name == "round/payload_bytes") round.bytes = point.value();
  if (name == "worker/steps") {
    round.steps += point.value();
    ++round.contributions;
  }
}

std::vector<CurvePoint> CurveBuilder::Kept(const std::map<uint64_t, Loss>& losses) const {
  // Of each version, the fewest tokens that a later one has: a restore went back behind what has more.
  std::map<uint64_t, double> fewest;
  double least = std::numeric_limits<double>::infinity();
  for (auto round = rounds_.rbegin(); round != rounds_.rend(); ++round) {
    fewest[round->first] = least;
    least = std::min(least, round->second.committed_tokens);
  }
  std::vector<CurvePoint> points;
  CurvePoint so_far;
  auto round = rounds_.begin();
  auto other = other_bytes_.begin();
  for (const auto& [version, loss] : losses) {
    for (; round != rounds_.end() && round->first <= version; ++round) {
      const Round& one = round->second;
      so_far.bytes += one.bytes;
      if (one.contributions == 0) continue;
      so_far.rounds += 1;
      so_far.steps += one.steps / static_cast<double>(one.contributions);
      for (; other != other_bytes_.end() && other->first <= one.unix_s; ++other)
        so_far.bytes += other->second;
    }
    const auto bound = fewest.find(version);
    const double limit = version == 0 ? std::numeric_limits<double>::infinity()
                                      : (bound == fewest.end() ? least : bound->second);
    const auto at = rounds_.find(version);
    const double tokens = at == rounds_.end() ? loss.committed_tokens : at->second.committed_tokens;
    if (tokens > limit) continue;
    CurvePoint& point = points.emplace_back(so_far);
    point.version = version;
    point.tokens = tokens;
    // A version has its loss when it was measured, and stood in the run when its round closed.
    point.seconds = std::max(0.0, (at == rounds_.end() ? loss.unix_s : at->second.unix_s) - first_s_);
    point.loss = loss.value;
  }
  return points;
}

absl::StatusOr<RunCurve> CurveBuilder::Build(ComparedLoss loss) const {
  RunCurve curve;
  curve.points = Kept(loss == ComparedLoss::kValidation ? validation_ : training_);
  if (curve.points.empty()) {
    return absl::NotFoundError(loss == ComparedLoss::kValidation
                                   ? "no version has a validation loss yet; --loss training compares the "
                                     "losses of the training"
                                   : "no round with a training loss has closed yet");
  }
  double tokens = 0, bytes = 0, last_s = first_s_;
  for (const auto& [version, round] : rounds_) {
    tokens += round.tokens;
    bytes += round.bytes;
    last_s = std::max(last_s, round.unix_s);
  }
  for (const auto& [unix_s, more] : other_bytes_) bytes += more;
  if (last_s > first_s_) curve.tokens_per_second = tokens / (last_s - first_s_);
  if (tokens > 0) curve.bytes_per_token = bytes / tokens;
  return curve;
}

}  // namespace atl
