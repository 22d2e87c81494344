#ifndef ATOLL_WORKER_CUDA_SHADOW_MEMORY_H_
#define ATOLL_WORKER_CUDA_SHADOW_MEMORY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "worker/cuda/host_access.h"

namespace atl::device::host {

/// The intervals between barriers, numbered over all launches. Blocks run one after another, so the number
/// also tells the block and the launch.
class Intervals {
 public:
  void BeginLaunch() { launch_ = Next(); }
  void BeginBlock(uint32_t block) {
    block_ = Next();
    blocks_.emplace_back(block_, block);
  }
  uint64_t Next() { return ++now_; }

  uint64_t now() const { return now_; }
  /// Whether no barrier orders an access of then before one of now by another thread.
  bool Unordered(uint64_t then) const { return then == now_ || (then >= launch_ && then < block_); }
  bool InBlock(uint64_t then) const { return then >= block_; }
  bool InLaunch(uint64_t then) const { return then >= launch_; }
  /// The block of an interval of this or an earlier launch.
  uint32_t BlockOf(uint64_t then) const;

 private:
  uint64_t now_ = 0;
  uint64_t launch_ = 0;
  uint64_t block_ = 0;
  std::vector<std::pair<uint64_t, uint32_t>> blocks_;  // first interval, block; ascending
};

/// Records an access of one element by `thread` in the current interval. The description of the access that
/// conflicts with it, or of a read of memory that nobody wrote.
std::optional<std::string> RecordAccess(const Intervals& intervals, const Region& region, uint32_t thread,
                                        Access access, Shadow& shadow);

}  // namespace atl::device::host

#endif  // ATOLL_WORKER_CUDA_SHADOW_MEMORY_H_
