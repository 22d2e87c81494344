#ifndef ATOLL_CLIENT_SYNC_DATA_CURSOR_H_
#define ATOLL_CLIENT_SYNC_DATA_CURSOR_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "client/sync/connection.h"
#include "client/sync/context.h"
#include "client/sync/replica.h"
#include "client/sync/session.h"

namespace atl {

/// Which part of the shared data the replica trains on. Follows the plans that come with the versions.
class DataCursor {
 public:
  /// The replica stands where the Join sent it. All pointers outlive this object.
  DataCursor(Session* session, Replica* replica, const WorkerContext& context);

  /// None with local data.
  std::optional<uint32_t> partition() const { return partition_; }

  /// Goes where the plan sends the worker. Does nothing when that is this partition at sample `position`,
  /// which is where the coordinator knows the worker to be. True: the replica moved.
  absl::StatusOr<bool> Follow(const RoundPlan& plan, uint64_t position);

 private:
  Session* const session_;
  Replica* const replica_;
  const WorkerContext context_;
  std::optional<uint32_t> partition_;
};

}  // namespace atl

#endif  // ATOLL_CLIENT_SYNC_DATA_CURSOR_H_
