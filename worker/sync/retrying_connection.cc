#include "worker/sync/retrying_connection.h"

#include "absl/strings/str_format.h"
#include "worker/sync/rejection.h"

namespace atoll {
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
auto RetryingConnection::Insist(const std::string& what, Attempt attempt) -> decltype(attempt()) {
  // Only a wait of this call's own is over when it succeeds: a push that is refused for lack of room goes on
  // waiting though its status can be asked for.
  bool paused = false;
  while (true) {
    auto result = attempt();
    const Reaction reaction = result.ok() ? Reaction::kExit : ReactionTo(result.status());
    if (result.ok() || RejectionOf(result.status()) != RefusalReason::kNone) patience_->Reached();
    if (!IsWorthAnother(reaction)) {
      // An answer, whichever. What this worker cancelled itself is none.
      if (paused && !absl::IsCancelled(result.status())) patience_->Over();
      return result;
    }
    if (patience_->GivesUp(result.status())) return GivenUp(result.status());
    paused = true;
    if (!patience_->Pause(result.status(), what)) {
      return absl::CancelledError(
          absl::StrFormat("stopped while trying %s: %s", what, std::string(result.status().message())));
    }
  }
}

absl::StatusOr<JoinInfo> RetryingConnection::Join(const JoinParameters& parameters) {
  return Insist("to join", [&] { return inner_->Join(parameters); });
}

absl::StatusOr<HeartbeatOrders> RetryingConnection::Heartbeat(const MemberRef& member,
                                                              const HeartbeatNews& news) {
  return inner_->Heartbeat(member, news);
}

absl::Status RetryingConnection::SeedParameters(const MemberRef& member, const Manifest& manifest,
                                                std::span<const SeedFragment> fragments) {
  return inner_->SeedParameters(member, manifest, fragments);
}

absl::StatusOr<PulledVersion> RetryingConnection::Pull(const MemberRef& member, const PullWish& wish,
                                                       std::span<std::byte> payload) {
  const std::string what =
      wish.after.has_value() ? absl::StrFormat("to pull a version above %d", wish.after->value()) : "to pull";
  // What one attempt has brought need not come again.
  PullProgress progress;
  PullWish going_on = wish;
  if (going_on.progress == nullptr) going_on.progress = &progress;
  return Insist(what, [&] { return inner_->Pull(member, going_on, payload); });
}

absl::StatusOr<PushReceipt> RetryingConnection::Push(const MemberRef& member, const PushOffer& offer,
                                                     std::span<const std::byte> payload, uint64_t from) {
  return inner_->Push(member, offer, payload, from);
}

absl::StatusOr<PushStatus> RetryingConnection::GetPushStatus(const MemberRef& member, const PushKey& key) {
  return Insist(absl::StrFormat("to learn what became of the push on version %d", key.base.value()),
                [&] { return inner_->GetPushStatus(member, key); });
}

absl::Status RetryingConnection::Leave(const MemberRef& member, const std::string& reason) {
  const Duration waited = patience_->waited();  // for something else
  while (true) {
    const absl::Status left = inner_->Leave(member, reason);
    const Reaction reaction = left.ok() ? Reaction::kExit : ReactionTo(left);
    const bool again = IsWorthAnother(reaction) && patience_->waited() - waited < kGoodbyePatience;
    if (!again || !patience_->Pause(left, "to leave")) return left;
  }
}

absl::StatusOr<ShownConfirmations> RetryingConnection::GetConfirmations(const MemberRef& member,
                                                                        const ConfirmationsWish& wish) {
  return inner_->GetConfirmations(member, wish);
}

void RetryingConnection::CancelPulls() { inner_->CancelPulls(); }

void RetryingConnection::EndPulls() { inner_->EndPulls(); }

void RetryingConnection::CancelPushes() { inner_->CancelPushes(); }

}  // namespace atoll
