#ifndef ATOLL_SIMULATE_SIMULATED_CONNECTION_H_
#define ATOLL_SIMULATE_SIMULATED_CONNECTION_H_

#include <cstdint>
#include <vector>

#include "common/mutex.h"
#include "simulate/coordinator_host.h"
#include "simulate/run_checker.h"
#include "simulate/simulated_network.h"
#include "client/sync/connection.h"

namespace atl {

/// One worker's connection to the coordinator over a simulated link. Every message is converted as for the
/// wire. A call fails when a message is lost, when the coordinator is down or dies meanwhile, and permanently
/// when the worker was killed. Fibers of one scheduler only.
class SimulatedConnection final : public CoordinatorConnection {
 public:
  /// All outlive the connection.
  SimulatedConnection(CoordinatorHost* host, SimulatedLink* link, RunChecker* checker)
      : host_(host), link_(link), checker_(checker) {}

  /// The worker's process is dead: calls fail, those under way too, and what they bring is not seen.
  void Kill();

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
  void CancelPulls() override;
  void EndPulls() override;
  void CancelPushes() override { pushes_cancelled_ = true; }

 private:
  struct Wait;

  /// Sends a request, calls `attempt` with the coordinator, and returns its answer when that arrives.
  template <typename Call>
  auto Through(Call attempt) -> decltype(attempt(std::declval<Coordinator&>()));
  absl::StatusOr<PullResult> AwaitVersion(Coordinator& coordinator, const MemberRef& caller,
                                          const PullCall& call);
  /// A push under the worker's name of what no worker may contribute. It must be rejected.
  void PushPoison(const CoordinatorHost::Life& life, Coordinator& coordinator, const MemberRef& member,
                  const PushHeader& header, uint64_t bytes);
  absl::StatusOr<PushResult> Upload(const CoordinatorHost::Life& life, Coordinator& coordinator,
                                    const MemberRef& caller, const PushHeader& header,
                                    std::span<const std::byte> payload, uint64_t from);

  CoordinatorHost* const host_;
  SimulatedLink* const link_;
  RunChecker* const checker_;
  bool killed_ = false;
  bool pulls_cancelled_ = false;
  bool pushes_cancelled_ = false;
  std::vector<Wait*> waits_;  // in the order in which they began
};

}  // namespace atl

#endif  // ATOLL_SIMULATE_SIMULATED_CONNECTION_H_
