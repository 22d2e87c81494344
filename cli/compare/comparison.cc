#include "cli/compare/comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace atl {
namespace {

std::vector<CurvePoint> FinitePoints(const RunCurve& curve) {
  std::vector<CurvePoint> points;
  std::ranges::copy_if(curve.points, std::back_inserter(points),
                       [](const CurvePoint& point) { return std::isfinite(point.loss); });
  return points;
}

}  // namespace

std::optional<double> LossAt(const RunCurve& curve, double tokens) {
  const std::vector<CurvePoint> points = FinitePoints(curve);
  if (points.empty() || tokens < points.front().tokens || tokens > points.back().tokens) return std::nullopt;
  const auto above = std::ranges::lower_bound(points, tokens, {}, &CurvePoint::tokens);
  if (above == points.begin()) return above->loss;
  const CurvePoint &from = *std::prev(above), &to = *above;
  const double share = to.tokens > from.tokens ? (tokens - from.tokens) / (to.tokens - from.tokens) : 1;
  return from.loss + share * (to.loss - from.loss);
}

std::optional<double> TokensTo(const RunCurve& curve, double loss) {
  const std::vector<CurvePoint> points = FinitePoints(curve);
  for (size_t i = 0; i < points.size(); ++i) {
    if (points[i].loss > loss) continue;
    if (i == 0 || points[i - 1].loss <= points[i].loss) return points[i].tokens;
    const double share = (points[i - 1].loss - loss) / (points[i - 1].loss - points[i].loss);
    return points[i - 1].tokens + share * (points[i].tokens - points[i - 1].tokens);
  }
  return std::nullopt;
}

Comparison Compare(const std::vector<RunCurve>& curves) {
  Comparison comparison;
  double fewest = std::numeric_limits<double>::infinity();
  for (const RunCurve& curve : curves) {
    const std::vector<CurvePoint> points = FinitePoints(curve);
    ComparedRun& run = comparison.runs.emplace_back();
    if (points.empty()) {
      fewest = 0;
      continue;
    }
    run.last = points.back();
    run.best = *std::ranges::min_element(points, {}, &CurvePoint::loss);
    fewest = std::min(fewest, points.back().tokens);
    comparison.target = std::max(comparison.target.value_or(points.back().loss), points.back().loss);
  }
  comparison.equal_tokens = std::isfinite(fewest) ? fewest : 0;
  for (size_t i = 0; i < curves.size(); ++i) {
    ComparedRun& run = comparison.runs[i];
    if (comparison.equal_tokens > 0) run.loss_at_equal_tokens = LossAt(curves[i], comparison.equal_tokens);
    if (comparison.target) run.tokens_to_target = TokensTo(curves[i], *comparison.target);
  }
  return comparison;
}

}  // namespace atl
