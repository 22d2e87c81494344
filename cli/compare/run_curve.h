#ifndef ATOLL_CLI_COMPARE_RUN_CURVE_H_
#define ATOLL_CLI_COMPARE_RUN_CURVE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "atoll/v1/admin.pb.h"

namespace atl {

/// Where a run stood when a loss was measured. All counts are from the beginning of the run, and include work
/// that a restore abandoned, but for `tokens`, which are those that the version holds.
struct CurvePoint {
  uint64_t version = 0;
  double tokens = 0;
  double steps = 0;    // inner steps of one worker
  double rounds = 0;   // closed
  double seconds = 0;  // since the run's first measured value
  double bytes = 0;    // of contributions, all fragments together
  double loss = 0;
};

enum class CompareAxis : uint8_t { kTokens, kSteps, kRounds, kTime, kBytes };
double XOf(const CurvePoint& point, CompareAxis axis);

/// Which loss is compared.
enum class ComparedLoss : uint8_t { kValidation, kTraining };

/// A run to compare. The points are those that led to the newest version, in its order.
struct RunCurve {
  std::string name;
  std::string source;  // an address or a file
  std::vector<CurvePoint> points;
  double tokens_per_second = 0;  // over the whole run, pauses included; 0: not known
  double bytes_per_token = 0;    // of contributions; 0: not known
};

/// Collects the points of `atollctl metrics export`, in any order, and makes the curve of them.
class CurveBuilder {
 public:
  void Add(const v1::MetricPoint& point);
  /// NotFound when the run has no such loss.
  absl::StatusOr<RunCurve> Build(ComparedLoss loss) const;

 private:
  struct Round {
    double committed_tokens = 0;
    double tokens = 0;
    double bytes = 0;
    double steps = 0;  // of all its contributions together
    uint64_t contributions = 0;
    double unix_s = 0;
    bool closed = false;  // a record is known, of a round or a restore
  };
  struct Loss {
    double value = 0;
    double committed_tokens = 0;
    double unix_s = 0;
  };

  std::vector<CurvePoint> Kept(const std::map<uint64_t, Loss>& losses) const;

  std::map<uint64_t, Round> rounds_;  // of the first fragment, by version
  std::map<uint64_t, Loss> validation_;
  std::map<uint64_t, Loss> training_;
  std::map<double, double> other_bytes_;  // of the other fragments, by time
  double first_s_ = 0;
  bool any_ = false;
};

}  // namespace atl

#endif  // ATOLL_CLI_COMPARE_RUN_CURVE_H_
