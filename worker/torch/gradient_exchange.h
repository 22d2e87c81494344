#ifndef ATOLL_WORKER_TORCH_GRADIENT_EXCHANGE_H_
#define ATOLL_WORKER_TORCH_GRADIENT_EXCHANGE_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "worker/torch/flat_parameters.h"
#include "worker/torch/libtorch.h"
#include "worker/torch/rank_collectives.h"
#include "worker/torch/rank_slices.h"

namespace atl {

/// Whether gradients may leave while the backward pass goes on. Not when a block is computed again in it:
/// such a block runs a backward pass of its own, so that the gradient of a tensor can come in several parts.
enum class GradientOverlap : bool { kNo, kYes };

/// Sums the ranks' gradients: each rank gets the sums of its own slice (reduce-scatter, as one reduction per
/// bucket), and sends its slice of the parameters to all after the step. Buckets are reduced from the end of
/// the flat vector to its beginning, because the backward pass ends with the first tensors. Not thread-safe.
/// Methods throw what LibTorch throws.
class GradientExchange {
 public:
  static constexpr int64_t kBucketElements = int64_t{1} << 21;  // 8 MiB

  /// Both outlive this object, which outlives the last backward pass.
  GradientExchange(FlatParameters& parameters, RankCollectives& collectives, GradientOverlap overlap);
  ~GradientExchange();
  GradientExchange(const GradientExchange&) = delete;
  GradientExchange& operator=(const GradientExchange&) = delete;

  RankSlice slice() const { return slice_; }

  /// Call before the last backward pass of a step: buckets leave from here on as their gradients are
  /// complete.
  void Arm();
  /// Sends what has not left, and waits. After it, the gradients of slice() are the sums over the ranks, and
  /// the others undefined. All ranks call it in each step, also when their own pass failed.
  void Finish();
  /// After the optimizer's step on slice(): all parameters on all ranks, all gradients zero.
  void ShareParameters();
  /// Notes for all ranks that a tensor has a gradient when one rank has seen it
  /// (FlatParameters::SawGradient). All ranks call it in each step.
  void ShareSeenGradients();

 private:
  struct Bucket {
    RankSlice range;
    int owner = 0;
    int tensors = 0;  // that lie in it, in whole or in part
    int missing = 0;  // of these, whose gradient is not complete
  };
  struct Hook;

  void MakeBuckets();
  void InstallHooks();
  void GradientReady(size_t tensor);
  void StartReady();
  void Start(const Bucket& bucket);

  FlatParameters& parameters_;
  RankCollectives& collectives_;
  const RankSlice slice_;
  std::vector<Bucket> buckets_;                  // in the order in which they leave
  std::vector<std::vector<size_t>> buckets_of_;  // a tensor's
  std::vector<std::shared_ptr<void>> hooked_;    // accumulators of gradients, which hold the hooks
  std::shared_ptr<bool> alive_;                  // the hooks may outlive this object
  bool armed_ = false;
  // Every tensor has had a gradient, on one rank or another. The same on all ranks, unlike what this rank's
  // own backward passes have seen between two sums: a model may use a tensor for some data only.
  bool all_seen_ = false;
  size_t next_ = 0;  // bucket to leave
  std::vector<std::unique_ptr<PendingCollective>> pending_;
};

}  // namespace atl

#endif  // ATOLL_WORKER_TORCH_GRADIENT_EXCHANGE_H_
