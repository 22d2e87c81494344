#ifndef ATOLL_WORKER_ISLAND_ISLAND_H_
#define ATOLL_WORKER_ISLAND_ISLAND_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/log.h"
#include "worker/island/agreement.h"
#include "worker/island/followers.h"
#include "worker/island/island_store.h"
#include "worker/island/peer_link.h"
#include "worker/island/placement.h"
#include "worker/torch/rank_group.h"

namespace atl {

/// Exit codes of a rank, beside those of all programs: its supervisor starts the island again.
inline constexpr int kIslandBroken = 75;   // another rank is lost
inline constexpr int kIslandRestart = 76;  // the run asked for it

struct IslandOptions {
  IslandPlace place;
  RankFacts facts;     // of this rank
  std::string device;  // "cpu", "cuda:1"
  Duration timeout = Seconds(60);
  Logger log;
  /// Another rank is lost, or a collective has failed: this process cannot go on. Perhaps called by several
  /// threads; it does not return in production.
  std::function<void(const absl::Status& cause)> on_broken;
  /// Rank 0: another rank was asked to end.
  std::function<void()> on_drain;
  /// Whether this process was asked to end: Form looks at it each second, or every 5 s while it connects to
  /// the store. Null: Form waits for the ranks all the same.
  std::function<bool()> asked_to_end;
};

/// The ranks that one worker consists of, connected. Rank 0 has followers, the others have a link to it.
class Island {
 public:
  /// Waits for all ranks, and says every few seconds for which. Ranks on one host are waited for for the
  /// timeout, those on several for ten times as long. AlreadyExists: the port is in use. InvalidArgument: the
  /// ranks do not agree (agreement.h). DeadlineExceeded: ranks are missing, named. Cancelled: asked to end.
  static absl::StatusOr<std::unique_ptr<Island>> Form(IslandOptions options);

  bool is_first() const { return options_.place.rank == 0; }
  RankGroup& group() { return *group_; }
  /// Of rank 0.
  Followers& followers() { return *followers_; }
  /// Of the others.
  PeerLink& first() { return *first_; }
  /// Whether rank 0 is on this host, as the network sees it. Of the others.
  bool on_host_of_first() const { return on_host_of_first_; }

 private:
  explicit Island(IslandOptions options);
  /// A connection to rank 0, of this life of the island or of the next one. Unavailable, with what to do.
  absl::StatusOr<std::unique_ptr<FrameSocket>> ReachFirst();
  /// The address of rank 0's host that its welcome names, perhaps empty. Waits for the other ranks.
  /// Unavailable: rank 0 has ended. InvalidArgument: it refuses this rank.
  absl::StatusOr<std::string> AwaitWelcome(FrameSocket& socket) const;
  absl::Status Gather();
  absl::Status Join();
  absl::Status CreateGroup(const std::string& address);
  absl::Status Connect(const std::string& address);
  PeerLinkOptions LinkTo(uint32_t rank) const;
  Duration patience() const;
  absl::Status CheckWait(const std::string& what) const;

  const IslandOptions options_;
  IslandStore store_;
  std::unique_ptr<RankGroup> group_;
  std::unique_ptr<Followers> followers_;
  std::unique_ptr<PeerLink> first_;
  bool on_host_of_first_ = false;
};

}  // namespace atl

#endif  // ATOLL_WORKER_ISLAND_ISLAND_H_
