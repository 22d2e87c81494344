#ifndef ATOLL_WORKER_ISLAND_FOLLOWERS_H_
#define ATOLL_WORKER_ISLAND_FOLLOWERS_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "worker/island/peer_link.h"
#include "worker/island/rank_call.h"

namespace atl {

/// The ranks of an island but the first, as rank 0 sees them. One thread uses it.
class Followers {
 public:
  /// In the order of their ranks, from 1 on.
  explicit Followers(std::vector<std::unique_ptr<PeerLink>> links) : links_(std::move(links)) {}

  /// Tells all of them. Each answers with one reply. Unavailable when one is lost.
  absl::Status Tell(const RankCall& call);
  /// The replies to the last Tell, in the order of the ranks.
  absl::StatusOr<std::vector<RankReply>> Replies();
  /// The replies to the last Tell and this rank's own end in one status: OK when all are. The first rank that
  /// failed by itself otherwise, named unless it is this one.
  absl::Status Finish(const absl::Status& own);

  /// The island ends: they leave with this exit code. Waits for them, `limit` at most.
  void Close(int exit_code, Duration limit);

 private:
  const std::vector<std::unique_ptr<PeerLink>> links_;
};

}  // namespace atl

#endif  // ATOLL_WORKER_ISLAND_FOLLOWERS_H_
