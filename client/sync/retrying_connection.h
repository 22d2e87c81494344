#ifndef ATOLL_CLIENT_SYNC_RETRYING_CONNECTION_H_
#define ATOLL_CLIENT_SYNC_RETRYING_CONNECTION_H_

#include <string>

#include "client/sync/connection.h"
#include "client/sync/retry_policy.h"

namespace atl {

/// Decorator: Join, Pull and GetPushStatus, which are idempotent, are tried again for as long as it takes
/// when waiting can help (Reaction::kRetry, and kResume for a pull that was damaged on the way), unless
/// RetryPolicy gives up. Leave is tried again for some seconds: then the lease ends by itself. Push is not
/// (Delivery asks for its fate between attempts), nor are Heartbeat (the next one comes anyway) and
/// SeedParameters (the grant may have moved). Cancelled when the worker is stopping. Not thread-safe: one
/// thread's.
class RetryingConnection final : public CoordinatorConnection {
 public:
  /// Both outlive this object.
  RetryingConnection(CoordinatorConnection* inner, RetryPolicy* retry_policy)
      : inner_(inner), retry_policy_(retry_policy) {}

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
  absl::StatusOr<ConfirmationPage> GetConfirmations(const MemberRef& member, const ConfirmationQuery& query,
                                                    Duration timeout) override;
  void CancelPulls() override;
  void EndPulls() override;
  void CancelPushes() override;
  void CancelCalls(Duration leave_within) override;

 private:
  template <typename Attempt>
  auto RetryLoop(const std::string& what, Attempt attempt) -> decltype(attempt());

  CoordinatorConnection* const inner_;
  RetryPolicy* const retry_policy_;
};

}  // namespace atl

#endif  // ATOLL_CLIENT_SYNC_RETRYING_CONNECTION_H_
