#ifndef ATOLL_CLI_COMPARE_COMPARISON_H_
#define ATOLL_CLI_COMPARE_COMPARISON_H_

#include <optional>
#include <string>
#include <vector>

#include "cli/compare/run_curve.h"

namespace atl {

/// What the table says of one run. Losses in nats per token; none: not known.
struct ComparedRun {
  std::optional<CurvePoint> last;
  std::optional<CurvePoint> best;
  std::optional<double> loss_at_equal_tokens;
  std::optional<double> tokens_to_target;
};

struct Comparison {
  double equal_tokens = 0;             // the most that every run has a loss for; 0: there is none
  std::optional<double> target;        // the last loss of the run that ended worst
  std::vector<ComparedRun> runs = {};  // in the order of the curves
};

/// Losses between two points are on the straight line between them. Points that are not finite count nowhere.
Comparison Compare(const std::vector<RunCurve>& curves);

/// The loss at so many tokens; nullopt outside the curve.
std::optional<double> LossAt(const RunCurve& curve, double tokens);
/// The fewest tokens with at most this loss; nullopt if it is never reached.
std::optional<double> TokensTo(const RunCurve& curve, double loss);

}  // namespace atl

#endif  // ATOLL_CLI_COMPARE_COMPARISON_H_
