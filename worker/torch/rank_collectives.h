#ifndef ATOLL_WORKER_TORCH_RANK_COLLECTIVES_H_
#define ATOLL_WORKER_TORCH_RANK_COLLECTIVES_H_

#include <memory>
#include <span>

#include "worker/torch/libtorch.h"

namespace atl {

/// A collective that has begun. Its tensor outlives it.
class PendingCollective {
 public:
  virtual ~PendingCollective() = default;
  /// Returns when the tensor has the result. Throws c10::Error when the group is broken.
  virtual void Wait() = 0;
};

/// Collectives on contiguous tensors. All ranks make the same calls in the same order, with tensors of the
/// same size and type. Collectives that were started run at the same time. Throws c10::Error when the group
/// is broken. Not thread-safe.
class RankCollectives {
 public:
  virtual ~RankCollectives() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// The sum over the ranks, for `root` only; the tensor's contents are undefined on the others.
  virtual std::unique_ptr<PendingCollective> StartReduce(torch::Tensor tensor, int root) = 0;
  virtual std::unique_ptr<PendingCollective> StartBroadcast(torch::Tensor tensor, int root) = 0;
  virtual std::unique_ptr<PendingCollective> StartSend(torch::Tensor tensor, int to) = 0;
  virtual std::unique_ptr<PendingCollective> StartReceive(torch::Tensor tensor, int from) = 0;
  /// Replaces `values`, on the host, by their sums over the ranks: the same bits on all ranks.
  virtual void Sum(std::span<double> values) = 0;
};

}  // namespace atl

#endif  // ATOLL_WORKER_TORCH_RANK_COLLECTIVES_H_
