#ifndef ATOLL_CLIENT_SYNC_METERED_CONNECTION_H_
#define ATOLL_CLIENT_SYNC_METERED_CONNECTION_H_

#include <string>

#include "client/sync/connection.h"
#include "client/sync/context.h"

namespace atl {

/// Decorator: accounts where the time of each call of the context's thread went (waiting for an answer,
/// moving bytes), and tells the observer. As thread-safe as what it wraps, but for the calls that take the
/// thread's time: all but Heartbeat, Cancel* and EndPulls.
class MeteredConnection final : public CoordinatorConnection {
 public:
  /// `inner` outlives this object.
  MeteredConnection(CoordinatorConnection* inner, const WorkerContext& context)
      : inner_(inner), context_(context) {}

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
  CoordinatorConnection* const inner_;
  const WorkerContext context_;
};

}  // namespace atl

#endif  // ATOLL_CLIENT_SYNC_METERED_CONNECTION_H_
