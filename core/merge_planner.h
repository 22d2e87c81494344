#ifndef ATOLL_CORE_MERGE_PLANNER_H_
#define ATOLL_CORE_MERGE_PLANNER_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/fragment_plan.h"
#include "core/merge_plan.h"
#include "core/norm_pass.h"
#include "core/run_options.h"

namespace atl {

// clang-format off
/// Makes the merge plan of a round, in float64. With x_i the contributions and w_i their normalised weights:
///
///   norm guard      x_i <- g_i x_i, g_i = min(1, median norm / |x_i|) by the recorded norms; before the method
///   mean            sum w_i x_i
///   rda             per tensor: R d / |d|, R = sum w_i |x_i|, d = sum w_i x_i / |x_i|; embeddings and
///                   averaged tensors as mean (Decoupled DiLoCo, arXiv 2604.21428). Where |d| is at most
///                   kCancelled * sum w_i, the directions cancel to within the rounding of float32: the
///                   tensor does not move.
///   trimmed_mean    per coordinate, unweighted: without floor(trim * n) values at each end
///   median          per coordinate, unweighted; of an even number the mean of the middle two
///   centered_clip   v <- v + sum w_i (x_i - v) min(1, radius / |x_i - v|), clip_iterations times from v = 0
///                   (Karimireddy, He, Jaggi, arXiv 2012.10333); radius 0: with clip_by_distance, at
///                   every pass, the median of |x_i - v|, else the median norm
///
/// Median norms are over contributions that are not zero (a worker that did nothing must not stop the
/// others), of an even number the mean of the middle two. A zero contribution has no direction and adds
/// nothing to rda's. A single contribution is its own mean, rda and median.
///
/// mean, trimmed_mean and median need no look at the payloads; rda reads them twice before they are merged,
/// centered_clip clip_iterations - 1 times. Passes are carried out by the caller, on any threads:
///
///   while (planner.needs_pass()) {
///     for each piece in [0, planner.pieces()): planner.Measure(piece);
///     planner.EndPass();
///   }
// clang-format on
class MergePlanner {
 public:
  /// The inputs are at least one, in summation order; their payloads outlive the planner.
  MergePlanner(const MergeOptions& options, std::span<const MergeInput> inputs, const FragmentLayout& layout);
  MergePlanner(const MergePlanner&) = delete;  // the meter looks at the plan's inputs
  MergePlanner& operator=(const MergePlanner&) = delete;

  bool needs_pass() const { return norm_pass_.has_value(); }
  size_t pieces() const { return norm_pass_->pieces(); }
  /// Safe to call for different pieces on different threads.
  void Measure(size_t piece) { norm_pass_->Measure(piece); }
  void EndPass();

  /// Complete once no pass is needed. Valid as long as the planner and the payloads.
  const MergePlan& plan() const { return plan_; }

  /// g_i of the norm guard; 1 without it.
  const std::vector<double>& guard_factors() const { return scales_; }
  /// min(1, radius / |x_i - v|) of centered_clip's last pass; 1 with every other method.
  const std::vector<double>& clip_factors() const { return clip_factors_; }

  static constexpr double kCancelled = 1e-6;

 private:
  void PlanMean();
  void Begin(const FragmentLayout& layout);
  void PlanTrimmed(double trim);
  void BeginRda(const FragmentLayout& layout);
  void EndRdaPass();
  void BeginClip();
  void ClipStep(std::span<const double> distances);

  const MergeOptions options_;
  MergePlan plan_;
  std::vector<double> scales_;  // of the norm guard
  std::optional<NormPass> norm_pass_;
  // rda: a stretch is one tensor that is neither an embedding nor averaged.
  std::vector<size_t> segment_of_stretch_;
  std::vector<std::vector<double>> directions_;  // by stretch: w_i / |x_i|; empty in the first pass
  std::vector<double> mean_norms_;               // by stretch: R
  // centered_clip
  double radius_ = 0;
  uint32_t iterations_left_ = 0;
  std::vector<double> center_;  // v as coefficients of the scaled contributions
  std::vector<double> clip_factors_;
};

}  // namespace atl

#endif  // ATOLL_CORE_MERGE_PLANNER_H_
