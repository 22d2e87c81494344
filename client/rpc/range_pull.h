#ifndef ATOLL_CLIENT_RPC_RANGE_PULL_H_
#define ATOLL_CLIENT_RPC_RANGE_PULL_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "client/rpc/call_set.h"
#include "client/rpc/call_setup.h"
#include "client/rpc/chunks.h"
#include "client/rpc/pull_reading.h"
#include "common/thread.h"

namespace atl {

/// A part of a payload that is pulled beside the rest, over a connection and on a thread of its own.
class RangePull {
 public:
  /// How parts are asked for. All outlive this.
  struct Call {
    const CallSetup* setup = nullptr;
    CallSet* calls = nullptr;
    const grpc::internal::RpcMethod* method = nullptr;
  };
  /// Bytes [first, first + out.size()) of the payload of `whole`, into `out`. Begins at once; all but `out`,
  /// which outlives this, is copied.
  RangePull(const Call& call, std::shared_ptr<grpc::Channel> channel, const MemberRef& member,
            const PullRequest& pull_request, const PulledVersion& whole, uint64_t first,
            std::span<std::byte> out);
  ~RangePull();
  RangePull(const RangePull&) = delete;
  RangePull& operator=(const RangePull&) = delete;

  void Cancel() { context_.TryCancel(); }
  /// Waits for its end. Unavailable when another version has been published meanwhile.
  absl::Status Finish();
  /// After Finish: what has come.
  const ChunkPlacer& placer() const { return placer_; }
  uint64_t wire_bytes() const { return wire_bytes_; }

 private:
  absl::Status Run();
  absl::Status Read(PullReader& reader, StallGuard& guard, bool* ended);

  const Call call_;
  const std::shared_ptr<grpc::Channel> channel_;
  const v1::PullRequest request_;
  const PulledVersion whole_;
  grpc::ClientContext context_;
  ChunkPlacer placer_;
  uint64_t wire_bytes_ = 0;
  absl::Status status_;
  Thread thread_;  // last: it uses everything above
};

}  // namespace atl

#endif  // ATOLL_CLIENT_RPC_RANGE_PULL_H_
