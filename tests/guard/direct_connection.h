#ifndef ATOLL_TESTS_GUARD_DIRECT_CONNECTION_H_
#define ATOLL_TESTS_GUARD_DIRECT_CONNECTION_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "client/sync/connection.h"
#include "server/coordinator.h"
#include "tests/guard/turnstile.h"

namespace atl {

/// What happens to one call.
enum class CallFault {
  kNone,
  kLost,        // it does not arrive
  kAnswerLost,  // it takes effect, and its answer does not arrive
  kTwice,       // it arrives twice
};

/// The coordinator that workers reach at the moment, and how they wait for it.
struct CoordinatorLink {
  Coordinator* coordinator = nullptr;  // null: it is down
  Turnstile* turnstile = nullptr;
  uint64_t life = 0;             // of the coordinator, counted
  std::function<void()> settle;  // returns once the coordinator has done what the last call made it do
};

/// One worker's connection to a coordinator of the same process: every message is converted as for the wire,
/// and no socket is between. Each call ends the caller's turn before it begins, a push also in its middle.
class DirectConnection final : public CoordinatorConnection {
 public:
  explicit DirectConnection(CoordinatorLink* link) : link_(link) {}

  /// Set by the scheduler: of the next call that is no heartbeat.
  CallFault fault = CallFault::kNone;
  /// Set by the scheduler: every call fails from now on, in a way that ends the worker.
  bool killed = false;
  /// Drops uploads that are not finished, before their coordinator is destroyed.
  void DropUploads() { uploads_.clear(); }

  absl::StatusOr<JoinedRun> Join(const JoinCall& call) override;
  absl::StatusOr<HeartbeatReply> Heartbeat(const MemberRef& member, const HeartbeatCall& call) override;
  absl::Status SeedParameters(const MemberRef& member, const Manifest& manifest,
                              std::span<const SeedFragment> fragments) override;
  absl::StatusOr<PulledVersion> Pull(const MemberRef& member, const PullRequest& request,
                                     std::span<std::byte> payload) override;
  absl::StatusOr<PushReceipt> Push(const MemberRef& member, const PushHeader& header,
                                   std::span<const std::byte> payload, uint64_t from) override;
  absl::StatusOr<PushStatusReply> GetPushStatus(const MemberRef& member, const PushKey& key) override;
  absl::Status Leave(const MemberRef& member, const std::string& reason) override;
  void CancelPulls() override { pulls_cancelled_ = true; }
  void CancelPushes() override {}

 private:
  /// Ends the turn, then calls `attempt` as the fault says, then waits for what it brings about.
  template <typename Call>
  auto Through(Call attempt) -> decltype(attempt());
  absl::Status Reachable() const;
  absl::StatusOr<PushResult> Upload(uint64_t id, const MemberRef& caller, const PushHeader& header,
                                    std::span<const std::byte> payload, uint64_t from);
  absl::StatusOr<PullResult> PullNow(const MemberRef& caller, PullCall call) const;

  CoordinatorLink* const link_;
  std::map<uint64_t, std::unique_ptr<PushSession>> uploads_;  // a worker may have several under way
  uint64_t next_upload_ = 0;
  std::map<FragmentId, std::pair<std::optional<Version>, uint64_t>> asked_;  // by the last pull
  bool changes_nothing_ = false;  // the call under way: there is nothing to settle
  bool pulls_cancelled_ = false;
};

}  // namespace atl

#endif  // ATOLL_TESTS_GUARD_DIRECT_CONNECTION_H_
