#include "client/sync/retrying_connection.h"

#include "absl/strings/str_format.h"
#include "client/sync/rejection.h"

namespace atl {
namespace {

// What a goodbye is worth: without it the run waits for this worker until its lease ends.
constexpr Duration kGoodbyePatience = Seconds(10);

bool IsWorthAnother(Reaction reaction) {
  return reaction == Reaction::kRetry || reaction == Reaction::kResume;
}

absl::Status GivenUp(const absl::Status& error) {
  return absl::UnavailableError(absl::StrFormat(
      "%s. No attempt has worked since this worker started, and trying again will hardly help; give "
      "--wait-forever to keep trying",
      std::string(error.message())));
}

}  // namespace

template <typename Attempt>
auto RetryingConnection::RetryLoop(const std::string& what, Attempt attempt) -> decltype(attempt()) {
  // Only a wait of this call's own is over when it succeeds: a push that is refused for lack of room goes on
  // waiting though its status can be asked for.
  bool paused = false;
  while (true) {
    auto result = attempt();
    const Reaction reaction = result.ok() ? Reaction::kExit : ReactionTo(result.status());
    if (result.ok() || RejectionReasonOf(result.status()) != RejectionReason::kNone) retry_policy_->Reached();
    if (!IsWorthAnother(reaction)) {
      // An answer, whichever. What this worker cancelled itself is none.
      if (paused && !absl::IsCancelled(result.status())) retry_policy_->Over();
      return result;
    }
    if (retry_policy_->GivesUp(result.status())) return GivenUp(result.status());
    paused = true;
    if (!retry_policy_->Pause(result.status(), what)) {
      return absl::CancelledError(
          absl::StrFormat("stopped while trying %s: %s", what, std::string(result.status().message())));
    }
  }
}

absl::StatusOr<JoinedRun> RetryingConnection::Join(const JoinCall& call) {
  return RetryLoop("to join", [&] { return inner_->Join(call); });
}

absl::StatusOr<HeartbeatReply> RetryingConnection::Heartbeat(const MemberRef& member,
                                                             const HeartbeatCall& call) {
  return inner_->Heartbeat(member, call);
}

absl::Status RetryingConnection::SeedParameters(const MemberRef& member, const Manifest& manifest,
                                                std::span<const SeedFragment> fragments) {
  return inner_->SeedParameters(member, manifest, fragments);
}

absl::StatusOr<PulledVersion> RetryingConnection::Pull(const MemberRef& member, const PullRequest& request,
                                                       std::span<std::byte> payload) {
  const std::string what = request.call.after.has_value()
                               ? absl::StrFormat("to pull a version above %d", request.call.after->value())
                               : "to pull";
  // What one attempt has brought need not come again.
  PullProgress progress;
  PullRequest going_on = request;
  if (going_on.progress == nullptr) going_on.progress = &progress;
  return RetryLoop(what, [&] { return inner_->Pull(member, going_on, payload); });
}

absl::StatusOr<PushReceipt> RetryingConnection::Push(const MemberRef& member, const PushHeader& header,
                                                     std::span<const std::byte> payload, uint64_t from) {
  return inner_->Push(member, header, payload, from);
}

absl::StatusOr<PushStatusReply> RetryingConnection::GetPushStatus(const MemberRef& member,
                                                                  const PushKey& key) {
  return RetryLoop(absl::StrFormat("to learn what became of the push on version %d", key.base.value()),
                   [&] { return inner_->GetPushStatus(member, key); });
}

absl::Status RetryingConnection::Leave(const MemberRef& member, const std::string& reason) {
  const Duration waited = retry_policy_->waited();  // for something else
  while (true) {
    const absl::Status left = inner_->Leave(member, reason);
    const Reaction reaction = left.ok() ? Reaction::kExit : ReactionTo(left);
    const bool again = IsWorthAnother(reaction) && retry_policy_->waited() - waited < kGoodbyePatience;
    if (!again || !retry_policy_->Pause(left, "to leave")) return left;
  }
}

absl::StatusOr<ConfirmationPage> RetryingConnection::GetConfirmations(const MemberRef& member,
                                                                      const ConfirmationQuery& query,
                                                                      Duration timeout) {
  return inner_->GetConfirmations(member, query, timeout);
}

void RetryingConnection::CancelPulls() { inner_->CancelPulls(); }

void RetryingConnection::EndPulls() { inner_->EndPulls(); }

void RetryingConnection::CancelPushes() { inner_->CancelPushes(); }

void RetryingConnection::CancelCalls(Duration leave_within) { inner_->CancelCalls(leave_within); }

}  // namespace atl
