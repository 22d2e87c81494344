#include "simulate/simulated_connection.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "common/crc32c.h"
#include "common/status.h"
#include "common/thread.h"
#include "protos/wire/heartbeat.h"
#include "protos/wire/join.h"
#include "protos/wire/pull.h"
#include "protos/wire/push.h"
#include "protos/wire/run_state.h"
#include "server/rpc/encode.h"
#include "client/rpc/convert.h"

namespace atl {
namespace {

/// What a caller waits for an answer that does not come, as the deadline of a call or a broken stream.
constexpr Duration kCallTimeout = Seconds(10);

absl::Status Killed() { return absl::UnauthenticatedError("this worker was killed"); }

}  // namespace

/// A pull that waits for a version.
struct SimulatedConnection::Wait {
  Mutex mutex;
  CondVar changed;
  bool ended = false;  // by this side
  std::optional<absl::StatusOr<PullResult>> answer;
};

void SimulatedConnection::Kill() {
  killed_ = true;
  CancelPulls();
}

void SimulatedConnection::CancelPulls() {
  pulls_cancelled_ = true;
  EndPulls();
}

void SimulatedConnection::EndPulls() {
  for (Wait* const wait : waits_) {
    wait->ended = true;
    wait->changed.NotifyAll();
  }
}

template <typename Call>
auto SimulatedConnection::Through(Call attempt) -> decltype(attempt(std::declval<Coordinator&>())) {
  const auto lost = [](const char* what) {
    SleepThisThread(kCallTimeout);
    return absl::UnavailableError(what);
  };
  if (killed_) return Killed();
  if (!link_->Cross()) return lost("no answer: the request was lost");
  if (killed_) return Killed();
  const CoordinatorHost::LifePtr life = host_->life();
  if (life == nullptr) return absl::UnavailableError("connection refused");
  ++life->calls;
  auto result = attempt(*life->coordinator);
  if (!life->dead && link_->Repeats()) result = attempt(*life->coordinator);
  const bool reset = life->dead;
  --life->calls;
  if (killed_) return Killed();
  if (reset) return absl::UnavailableError("connection reset by peer");
  if (!link_->Cross()) return lost("no answer: it was lost");
  if (killed_) return Killed();
  return result;
}

absl::StatusOr<JoinedRun> SimulatedConnection::Join(const JoinCall& call) {
  return Through([&](Coordinator& coordinator) -> absl::StatusOr<JoinedRun> {
    ATOLL_ASSIGN_OR_RETURN(const JoinCall arrived, JoinCallFromProto(JoinCallToProto(call)));
    ATOLL_ASSIGN_OR_RETURN(const JoinReply result, coordinator.Join(arrived));
    v1::JoinReply reply;
    ATOLL_RETURN_IF_ERROR(JoinReplyToProto(result, &reply));
    return JoinedRunFromProto(reply, call);
  });
}

absl::StatusOr<HeartbeatReply> SimulatedConnection::Heartbeat(const MemberRef& member,
                                                              const HeartbeatCall& call) {
  return Through([&](Coordinator& coordinator) -> absl::StatusOr<HeartbeatReply> {
    const v1::HeartbeatRequest request = HeartbeatCallToProto(member, call);
    ATOLL_ASSIGN_OR_RETURN(const MemberRef caller, MemberRefFromProto(request.worker()));
    ATOLL_ASSIGN_OR_RETURN(const HeartbeatCall arrived, HeartbeatCallFromProto(request));
    ATOLL_ASSIGN_OR_RETURN(const HeartbeatReply reply, coordinator.Heartbeat(caller, arrived));
    return HeartbeatReplyFromProto(HeartbeatReplyToProto(reply));
  });
}

absl::Status SimulatedConnection::SeedParameters(const MemberRef& member, const Manifest& manifest,
                                                 std::span<const SeedFragment> fragments) {
  return Through([&](Coordinator& coordinator) -> absl::Status {
    ATOLL_ASSIGN_OR_RETURN(const MemberRef caller, MemberRefFromProto(MemberRefToProto(member)));
    ATOLL_ASSIGN_OR_RETURN(const auto session, coordinator.StartSeed(caller, manifest));
    for (const SeedFragment& fragment : fragments) {
      ATOLL_RETURN_IF_ERROR(session->Append(fragment.id, 0, std::as_bytes(fragment.values)));
    }
    return session->Finish().status();
  });
}

absl::StatusOr<PullResult> SimulatedConnection::AwaitVersion(Coordinator& coordinator,
                                                             const MemberRef& caller, const PullCall& call) {
  // The coordinator may answer after this side has given up.
  const auto wait = std::make_shared<Wait>();
  waits_.push_back(wait.get());
  const uint64_t id = coordinator.Pull(caller, call, [wait](absl::StatusOr<PullResult> pulled) {
    const MutexLock lock(&wait->mutex);
    wait->answer = std::move(pulled);
    wait->changed.NotifyAll();
  });
  bool given_up = false;
  {
    const MutexLock lock(&wait->mutex);
    while (!wait->answer.has_value() && !wait->ended) wait->changed.Wait(&wait->mutex);
    given_up = !wait->answer.has_value();
  }
  std::erase(waits_, wait.get());
  if (!given_up) return *std::move(wait->answer);
  coordinator.CancelPull(id);
  return absl::CancelledError("the worker does not wait for the version any more");
}

absl::StatusOr<PulledVersion> SimulatedConnection::Pull(const MemberRef& member, const PullRequest& request,
                                                        std::span<std::byte> payload) {
  if (pulls_cancelled_ && !killed_) return absl::CancelledError("the worker pulls no more");
  const MonoTime began = SteadyNow();
  auto pulled = Through([&](Coordinator& coordinator) -> absl::StatusOr<PulledVersion> {
    PullRequest whole = request;
    whole.progress = nullptr;
    whole.call.zstd = false;
    const v1::PullRequest sent = PullRequestToProto(member, whole);
    ATOLL_ASSIGN_OR_RETURN(const PullCall call, PullCallFromProto(sent));
    ATOLL_ASSIGN_OR_RETURN(const MemberRef caller, MemberRefFromProto(sent.worker()));
    ATOLL_ASSIGN_OR_RETURN(const PullResult result, AwaitVersion(coordinator, caller, call));
    ATOLL_ASSIGN_OR_RETURN(PulledVersion version, PulledFromProto(PullReplyToProto(ReplyOf(result)), whole));
    if (version.outcome != PullOutcome::kParameters) return version;
    std::ranges::copy(result.delta != nullptr ? result.delta->payload : result.snapshot->payload,
                      payload.begin());
    return version;
  });
  if (!pulled.ok()) return pulled;
  pulled->waited = SteadyNow() - began;
  if (pulled->outcome == PullOutcome::kParameters)
    checker_->OnPulled(member.worker, request.call.fragment, pulled->version);
  return pulled;
}

absl::StatusOr<PushResult> SimulatedConnection::Upload(const CoordinatorHost::Life& life,
                                                       Coordinator& coordinator, const MemberRef& caller,
                                                       const PushHeader& header,
                                                       std::span<const std::byte> payload, uint64_t from) {
  ATOLL_ASSIGN_OR_RETURN(const auto session, coordinator.StartPush(caller, header));
  if (!session->already_accepted()) {
    const uint64_t middle = from + (payload.size() - from) / 2;
    ATOLL_RETURN_IF_ERROR(session->Append(from, payload.subspan(from, middle - from)));
    if (!link_->Cross() || killed_ || life.dead)
      return absl::UnavailableError("the stream broke in its middle");
    ATOLL_RETURN_IF_ERROR(session->Append(middle, payload.subspan(middle)));
  }
  return session->Finish();
}

void SimulatedConnection::PushPoison(const CoordinatorHost::Life& life, Coordinator& coordinator,
                                     const MemberRef& member, const PushHeader& header, uint64_t bytes) {
  // All bits set: scales and values that are not finite in every codec with scales, and in fp32.
  const std::vector<std::byte> poison(bytes, std::byte{0xFF});
  PushHeader poisoned = header;
  poisoned.payload_crc32c = Crc32c(poison);
  poisoned.payload_bytes = bytes;
  const auto arrived = PushHeaderFromProto(PushHeaderToProto(member, poisoned));
  if (arrived.ok()) (void)Upload(life, coordinator, member, *arrived, poison, 0);
}

absl::StatusOr<PushReceipt> SimulatedConnection::Push(const MemberRef& member, const PushHeader& header,
                                                      std::span<const std::byte> payload, uint64_t from) {
  if (pushes_cancelled_ && !killed_) return absl::CancelledError("the worker pushes no more");
  const auto receipt = Through([&](Coordinator& coordinator) -> absl::StatusOr<PushReceipt> {
    const CoordinatorHost::LifePtr life = host_->life();
    if (life == nullptr || life->coordinator.get() != &coordinator)
      return absl::UnavailableError("connection reset");
    PushHeader sent = header;
    if (link_->Lies()) {
      PushPoison(*life, coordinator, member, header, payload.size());
      sent.tokens *= 1000;
      sent.steps *= 1000;
    }
    const v1::PushHeader message = PushHeaderToProto(member, sent);
    ATOLL_ASSIGN_OR_RETURN(const MemberRef caller, MemberRefFromProto(message.worker()));
    ATOLL_ASSIGN_OR_RETURN(const PushHeader arrived, PushHeaderFromProto(message));
    ATOLL_ASSIGN_OR_RETURN(const PushResult result,
                           Upload(*life, coordinator, caller, arrived, payload, from));
    return PushReceipt{PushReplyFromProto(PushReplyToProto(result))};
  });
  if (receipt.ok()) {
    checker_->OnAcknowledged(member.worker, header.key.fragment, header.key.base, header.payload_crc32c);
  }
  return receipt;
}

absl::StatusOr<PushStatusReply> SimulatedConnection::GetPushStatus(const MemberRef& member,
                                                                   const PushKey& key) {
  return Through([&](Coordinator& coordinator) -> absl::StatusOr<PushStatusReply> {
    const v1::GetPushStatusRequest request = PushStatusCallToProto(member, key);
    ATOLL_ASSIGN_OR_RETURN(const MemberRef caller, MemberRefFromProto(request.worker()));
    ATOLL_ASSIGN_OR_RETURN(const PushStatusReply reply,
                           coordinator.GetPushStatus(caller, PushKeyFromProto(request.push())));
    return PushStatusReplyFromProto(PushStatusReplyToProto(reply));
  });
}

absl::Status SimulatedConnection::Leave(const MemberRef& member, const std::string& reason) {
  return Through([&](Coordinator& coordinator) -> absl::Status {
    ATOLL_ASSIGN_OR_RETURN(const MemberRef caller, MemberRefFromProto(MemberRefToProto(member)));
    return coordinator.Leave(caller, reason);
  });
}

}  // namespace atl
