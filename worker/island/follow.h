#ifndef ATOLL_WORKER_ISLAND_FOLLOW_H_
#define ATOLL_WORKER_ISLAND_FOLLOW_H_

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "client/sync/replica.h"
#include "worker/island/peer_link.h"
#include "worker/island/rank_call.h"
#include "worker/torch/rank_group.h"

namespace atl {

/// Builds this rank's replica from kBuild.
using FollowerFactory = std::function<absl::StatusOr<std::unique_ptr<Replica>>(const RankCall& build)>;

/// The life of a rank but the first: executes what rank 0 tells it until rank 0 ends the island. Returns the
/// exit code that rank 0 gave. Unavailable when rank 0 is lost.
absl::StatusOr<int> Follow(PeerLink& first, RankGroup& group, const FollowerFactory& make);

}  // namespace atl

#endif  // ATOLL_WORKER_ISLAND_FOLLOW_H_
