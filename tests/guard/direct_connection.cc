#include "tests/guard/direct_connection.h"

#include <algorithm>
#include <future>
#include <utility>

#include "client/rpc/convert.h"
#include "common/status.h"
#include "protos/wire/heartbeat.h"
#include "protos/wire/join.h"
#include "protos/wire/pull.h"
#include "protos/wire/push.h"
#include "protos/wire/run_state.h"
#include "server/rpc/encode.h"

namespace atl {

absl::Status DirectConnection::Reachable() const {
  if (killed) return absl::UnauthenticatedError("killed");
  if (link_->coordinator == nullptr) return absl::UnavailableError("the coordinator is down");
  return absl::OkStatus();
}

template <typename Call>
auto DirectConnection::Through(Call attempt) -> decltype(attempt()) {
  link_->turnstile->Yield();
  const CallFault stage = std::exchange(fault, CallFault::kNone);
  ATOLL_RETURN_IF_ERROR(Reachable());
  if (stage == CallFault::kLost) return absl::UnavailableError("the call was lost");
  auto result = attempt();
  if (stage == CallFault::kTwice && Reachable().ok()) {
    // Whether the second one still meets the round that the first one may have closed is no accident.
    link_->settle();
    result = attempt();
  }
  if (!std::exchange(changes_nothing_, false) && !killed) link_->settle();
  if (stage == CallFault::kAnswerLost) return absl::UnavailableError("the answer was lost");
  return result;
}

absl::StatusOr<JoinedRun> DirectConnection::Join(const JoinCall& call) {
  return Through([&]() -> absl::StatusOr<JoinedRun> {
    ATOLL_ASSIGN_OR_RETURN(const JoinCall arrived, JoinCallFromProto(JoinCallToProto(call)));
    ATOLL_ASSIGN_OR_RETURN(const JoinReply result, link_->coordinator->Join(arrived));
    v1::JoinReply reply;
    ATOLL_RETURN_IF_ERROR(JoinReplyToProto(result, &reply));
    return JoinedRunFromProto(reply, call);
  });
}

absl::StatusOr<HeartbeatReply> DirectConnection::Heartbeat(const MemberRef& member,
                                                           const HeartbeatCall& call) {
  ATOLL_RETURN_IF_ERROR(Reachable());
  const v1::HeartbeatRequest request = HeartbeatCallToProto(member, call);
  ATOLL_ASSIGN_OR_RETURN(const MemberRef caller, MemberRefFromProto(request.worker()));
  ATOLL_ASSIGN_OR_RETURN(const HeartbeatCall arrived, HeartbeatCallFromProto(request));
  ATOLL_ASSIGN_OR_RETURN(const HeartbeatReply reply, link_->coordinator->Heartbeat(caller, arrived));
  link_->settle();
  return HeartbeatReplyFromProto(HeartbeatReplyToProto(reply));
}

absl::Status DirectConnection::SeedParameters(const MemberRef& member, const Manifest& manifest,
                                              std::span<const SeedFragment> fragments) {
  return Through([&]() -> absl::Status {
    ATOLL_ASSIGN_OR_RETURN(const MemberRef caller, MemberRefFromProto(MemberRefToProto(member)));
    ATOLL_ASSIGN_OR_RETURN(const auto session, link_->coordinator->StartSeed(caller, manifest));
    for (const SeedFragment& fragment : fragments) {
      ATOLL_RETURN_IF_ERROR(session->Append(fragment.id, 0, std::as_bytes(fragment.values)));
    }
    return session->Finish().status();
  });
}

absl::StatusOr<PullResult> DirectConnection::PullNow(const MemberRef& caller, PullCall call) const {
  call.wait = Duration::zero();
  auto answer = std::make_shared<std::promise<absl::StatusOr<PullResult>>>();
  auto result = answer->get_future();
  link_->coordinator->Pull(
      caller, call, [answer](absl::StatusOr<PullResult> pulled) { answer->set_value(std::move(pulled)); });
  return result.get();
}

absl::StatusOr<PulledVersion> DirectConnection::Pull(const MemberRef& member, const PullRequest& request,
                                                     std::span<std::byte> payload) {
  return Through([&]() -> absl::StatusOr<PulledVersion> {
    if (pulls_cancelled_) return absl::CancelledError("the worker pulls no more");
    // The first question for a version tells the coordinator where the worker is. Others tell it nothing.
    const auto asks = std::pair(request.call.after, link_->life);
    changes_nothing_ = std::exchange(asked_[request.call.fragment], asks) == asks;
    PullRequest whole = request;
    whole.progress = nullptr;
    whole.call.zstd = false;
    const v1::PullRequest sent = PullRequestToProto(member, whole);
    ATOLL_ASSIGN_OR_RETURN(const PullCall call, PullCallFromProto(sent));
    ATOLL_ASSIGN_OR_RETURN(const MemberRef caller, MemberRefFromProto(sent.worker()));
    ATOLL_ASSIGN_OR_RETURN(const PullResult result, PullNow(caller, call));
    ATOLL_ASSIGN_OR_RETURN(PulledVersion pulled, PulledFromProto(PullReplyToProto(ReplyOf(result)), whole));
    if (pulled.outcome != PullOutcome::kParameters) return pulled;
    if (result.delta != nullptr) {
      std::ranges::copy(result.delta->payload, payload.begin());
    } else {
      std::ranges::copy(result.snapshot->payload, payload.begin());
    }
    return pulled;
  });
}

absl::StatusOr<PushResult> DirectConnection::Upload(uint64_t id, const MemberRef& caller,
                                                    const PushHeader& header,
                                                    std::span<const std::byte> payload, uint64_t from) {
  ATOLL_ASSIGN_OR_RETURN(uploads_[id], link_->coordinator->StartPush(caller, header));
  if (!uploads_[id]->already_accepted()) {
    const uint64_t middle = from + (payload.size() - from) / 2;
    ATOLL_RETURN_IF_ERROR(uploads_[id]->Append(from, payload.subspan(from, middle - from)));
    link_->settle();
    link_->turnstile->Yield();
    ATOLL_RETURN_IF_ERROR(Reachable());
    if (!uploads_.contains(id)) return absl::UnavailableError("the coordinator was restarted meanwhile");
    ATOLL_RETURN_IF_ERROR(uploads_[id]->Append(middle, payload.subspan(middle)));
  }
  return uploads_[id]->Finish();
}

absl::StatusOr<PushReceipt> DirectConnection::Push(const MemberRef& member, const PushHeader& header,
                                                   std::span<const std::byte> payload, uint64_t from) {
  return Through([&]() -> absl::StatusOr<PushReceipt> {
    const uint64_t id = next_upload_++;
    const v1::PushHeader message = PushHeaderToProto(member, header);
    ATOLL_ASSIGN_OR_RETURN(const MemberRef caller, MemberRefFromProto(message.worker()));
    ATOLL_ASSIGN_OR_RETURN(const PushHeader arrived, PushHeaderFromProto(message));
    const auto result = Upload(id, caller, arrived, payload, from);
    uploads_.erase(id);
    ATOLL_RETURN_IF_ERROR(result.status());
    return PushReceipt{PushReplyFromProto(PushReplyToProto(*result))};
  });
}

absl::StatusOr<PushStatusReply> DirectConnection::GetPushStatus(const MemberRef& member, const PushKey& key) {
  return Through([&]() -> absl::StatusOr<PushStatusReply> {
    changes_nothing_ = true;
    const v1::GetPushStatusRequest request = PushStatusCallToProto(member, key);
    ATOLL_ASSIGN_OR_RETURN(const MemberRef caller, MemberRefFromProto(request.worker()));
    ATOLL_ASSIGN_OR_RETURN(const PushStatusReply reply,
                           link_->coordinator->GetPushStatus(caller, PushKeyFromProto(request.push())));
    return PushStatusReplyFromProto(PushStatusReplyToProto(reply));
  });
}

absl::Status DirectConnection::Leave(const MemberRef& member, const std::string& reason) {
  return Through([&]() -> absl::Status {
    ATOLL_ASSIGN_OR_RETURN(const MemberRef caller, MemberRefFromProto(MemberRefToProto(member)));
    return link_->coordinator->Leave(caller, reason);
  });
}

}  // namespace atl
