#ifndef ATOLL_WORKER_TORCH_RANK_GROUP_H_
#define ATOLL_WORKER_TORCH_RANK_GROUP_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"

// No LibTorch type shows here: this is the folder's border.

namespace atl {

class RankCollectives;  // worker/torch/rank_collectives.h

/// OK when this program can connect ranks. Unimplemented, with the remedy, when it was built without Gloo.
absl::Status CheckRankSupport();

struct RankStoreOptions {
  std::string host;  // of the store
  uint16_t port = 0;
  bool hosts_store = false;  // this process is the store
  std::string prefix;        // of all keys
  std::string file = {};     // in place of host and port: ranks of one host share it, and nobody listens
  Duration timeout = Seconds(60);
};

/// The key-value store where ranks find each other: c10d's TCPStore, as torchrun has it, or its FileStore.
/// Thread-safe. Its destructor ends the connection; a store that this process hosts stays with the process.
class RankStore {
 public:
  /// AlreadyExists: the port is in use (when this process hosts it). Unavailable: nobody answered within the
  /// timeout (LibTorch 2.6 tries for up to three times as long), or the host's name is not known.
  static absl::StatusOr<std::shared_ptr<RankStore>> Open(const RankStoreOptions& options);

  virtual ~RankStore() = default;
  virtual absl::Status Set(const std::string& key, const std::string& value) = 0;
  /// Waits for the key. DeadlineExceeded after the timeout; Unavailable when the store is gone. After a
  /// timeout the store must not be used again: LibTorch 1.13 takes the late answer for that of the next call.
  virtual absl::StatusOr<std::string> Get(const std::string& key, Duration timeout) = 0;
  /// DeadlineExceeded when the store does not answer within the timeout; Unavailable when it is gone, or what
  /// answers is no store.
  virtual absl::Status Ping(Duration timeout) = 0;
};

struct RankGroupOptions {
  uint32_t rank = 0;
  uint32_t size = 1;
  std::string address;         // of this host, where the other ranks reach it
  std::string device = "cpu";  // "cuda:1": gradients and parameters travel over NCCL
  Duration timeout = Seconds(60);
  /// Called when a collective fails or does not end within the timeout. The group is unusable from then on.
  /// If it returns, the call that used the group fails with Internal.
  std::function<void(const absl::Status&)> on_broken;
};

/// The ranks of one island: processes that train one model together (c10d process groups; Gloo for memory of
/// the host, NCCL for that of CUDA devices). All ranks make the same calls in the same order. Not
/// thread-safe.
class RankGroup {
 public:
  /// Returns when all ranks are connected; `store` is the caller's again. Unimplemented: see
  /// CheckRankSupport, or CUDA without NCCL. Unavailable: a rank did not come within the timeout.
  static absl::StatusOr<std::unique_ptr<RankGroup>> Create(const std::shared_ptr<RankStore>& store,
                                                           const RankGroupOptions& options);

  RankGroup(uint32_t rank, uint32_t size, std::unique_ptr<RankCollectives> collectives);
  ~RankGroup();
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;

  uint32_t rank() const { return rank_; }
  uint32_t size() const { return size_; }
  /// Overwrites `values` with those of rank 0; as long on all ranks.
  absl::Status BroadcastFromFirst(std::span<float> values);
  RankCollectives& collectives() const { return *collectives_; }

 private:
  const uint32_t rank_;
  const uint32_t size_;
  const std::unique_ptr<RankCollectives> collectives_;
};

}  // namespace atl

#endif  // ATOLL_WORKER_TORCH_RANK_GROUP_H_
