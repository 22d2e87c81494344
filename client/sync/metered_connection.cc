#include "client/sync/metered_connection.h"

namespace atl {

absl::StatusOr<JoinedRun> MeteredConnection::Join(const JoinCall& call) {
  const Spending spending(context_.time, TimeUse::kStart);
  return inner_->Join(call);
}

absl::StatusOr<HeartbeatReply> MeteredConnection::Heartbeat(const MemberRef& member,
                                                            const HeartbeatCall& call) {
  // Beside the training, not instead of it: no time of the worker's is spent.
  const MonoTime begin = context_.clock->Now();
  auto reply = inner_->Heartbeat(member, call);
  context_.observer->OnHeartbeat(reply.ok(), context_.clock->Now() - begin);
  return reply;
}

absl::Status MeteredConnection::SeedParameters(const MemberRef& member, const Manifest& manifest,
                                               std::span<const SeedFragment> fragments) {
  const Spending spending(context_.time, TimeUse::kStart);
  return inner_->SeedParameters(member, manifest, fragments);
}

absl::StatusOr<PulledVersion> MeteredConnection::Pull(const MemberRef& member, const PullRequest& request,
                                                      std::span<std::byte> payload) {
  Spending spending(context_.time, TimeUse::kPull);
  auto pulled = inner_->Pull(member, request, payload);
  // What is not the transfer was waiting, a call that failed included.
  const bool paused = pulled.ok() && pulled->state == RunState::kPaused;
  spending.Move(paused ? TimeUse::kPause : TimeUse::kWait,
                spending.open() - (pulled.ok() ? pulled->transfer : Duration(0)));
  if (!pulled.ok()) return pulled;
  context_.observer->OnWaited(pulled->waited);
  if (pulled->outcome == PullOutcome::kParameters) {
    context_.observer->OnPulled(request.call.fragment, pulled->version, pulled->wire_bytes, pulled->waited,
                                pulled->transfer);
  }
  return pulled;
}

absl::StatusOr<PushReceipt> MeteredConnection::Push(const MemberRef& member, const PushHeader& header,
                                                    std::span<const std::byte> payload, uint64_t from) {
  const Spending spending(context_.time, TimeUse::kPush);
  return inner_->Push(member, header, payload, from);
}

absl::StatusOr<PushStatusReply> MeteredConnection::GetPushStatus(const MemberRef& member,
                                                                 const PushKey& key) {
  const Spending spending(context_.time, TimeUse::kPush);
  return inner_->GetPushStatus(member, key);
}

absl::Status MeteredConnection::Leave(const MemberRef& member, const std::string& reason) {
  const Spending spending(context_.time, TimeUse::kStart);
  return inner_->Leave(member, reason);
}

absl::StatusOr<ConfirmationPage> MeteredConnection::GetConfirmations(const MemberRef& member,
                                                                     const ConfirmationQuery& query,
                                                                     Duration timeout) {
  return inner_->GetConfirmations(member, query, timeout);
}

void MeteredConnection::CancelPulls() { inner_->CancelPulls(); }

void MeteredConnection::EndPulls() { inner_->EndPulls(); }

void MeteredConnection::CancelPushes() { inner_->CancelPushes(); }

void MeteredConnection::CancelCalls(Duration leave_within) { inner_->CancelCalls(leave_within); }

}  // namespace atl
