#include "client/sync/fragment_exchange.h"

#include <algorithm>
#include <utility>

#include "common/status.h"
#include "common/trace_context.h"
#include "core/codec.h"

namespace atl {
namespace {

/// One long poll.
constexpr Duration kPullWait = Seconds(5);

DeliveryReport NotFinite(const absl::Status& why) {
  return {.verdict = Verdict::kNotFinite, .rejection = why};
}

}  // namespace

bool FragmentExchange::StartPush(const PushHeader& claims, bool saves_round) {
  saves_round_ = saves_round;
  return Start(claims, claims.key.base);
}

bool FragmentExchange::StartPull(std::optional<Version> after) { return Start(std::nullopt, after); }

ExchangeAnswer FragmentExchange::PullHead() {
  parts_.runner->RunHere([this](ExchangeChannel& channel) { Run(channel, std::nullopt, std::nullopt); });
  return Take();
}

bool FragmentExchange::Start(const std::optional<PushHeader>& claims, std::optional<Version> after) {
  acknowledged_ = !claims.has_value();
  away_ = true;
  away_ =
      parts_.runner->Start([this, claims, after](ExchangeChannel& channel) { Run(channel, claims, after); });
  return away_;
}

const ExchangeAnswer* FragmentExchange::Peek() {
  const MutexLock lock(&mutex_);
  // Written once, before it can be seen here, and by nobody until Take.
  return answer_.has_value() ? &*answer_ : nullptr;
}

ExchangeAnswer FragmentExchange::Take() {
  away_ = false;
  const MutexLock lock(&mutex_);
  ExchangeAnswer answer = *std::move(answer_);
  answer_.reset();
  return answer;
}

void FragmentExchange::Run(ExchangeChannel& channel, const std::optional<PushHeader>& claims,
                           std::optional<Version> after) {
  const ScopedTrace trace(NewTrace());
  ExchangeAnswer answer;
  if (!claims.has_value() || Push(channel, *claims, answer)) Pull(channel, after, answer);
  {
    const MutexLock lock(&mutex_);
    answer_ = std::move(answer);
  }
  parts_.runner->Notify();
}

absl::Status FragmentExchange::Encode(ExchangeChannel& channel, const PushHeader& claims) {
  const Spending spending(channel.time(), TimeUse::kEncode);
  return parts_.encoder->Encode(claims, buffer_);
}

bool FragmentExchange::Push(ExchangeChannel& channel, const PushHeader& claims, ExchangeAnswer& answer) {
  const MemberRef member = channel.session().member();
  const absl::Status encoded = Encode(channel, claims);
  if (absl::IsInvalidArgument(encoded)) {
    acknowledged_ = true;
    answer.report = NotFinite(encoded);
    return false;
  }
  answer.status = encoded;
  if (!encoded.ok()) return false;
  parts_.push_journal->Record(member.epoch, *parts_.encoder, channel.time());
  if (saves_round_) parts_.resume_state->checkpoint->SaveRound();
  if (parts_.resume_state->key != nullptr) {
    const Spending spending(channel.time(), TimeUse::kEncode);
    const FragmentBase& base = *parts_.base;
    Confirm(*parts_.resume_state, member, base, HashPublished(base.values, parts_.pull.full, channel.payload),
            *parts_.worker_status);
  }
  auto report = channel.delivery().Deliver(parts_.encoder->header(), parts_.encoder->payload());
  answer.status = report.status();
  if (!report.ok()) return false;
  const bool old_codec = HasOldCodec(*report);
  if (!old_codec) parts_.push_journal->Settle(*parts_.encoder, *report, channel.time());
  const bool goes_on = report->verdict != Verdict::kNotFinite && !old_codec;
  answer.report = *std::move(report);
  acknowledged_ = true;
  parts_.runner->Notify();
  return goes_on;
}

void FragmentExchange::Pull(ExchangeChannel& channel, std::optional<Version> after, ExchangeAnswer& answer) {
  const bool holds = after.has_value() && after == parts_.base->version;
  PullRequest request =
      RequestFor(parts_.base->layout, parts_.pull, after, holds ? after : std::nullopt, kPullWait);
  if (request.call.have.has_value()) std::ranges::copy(parts_.base->values, buffer_.begin());
  channel.payload.resize(CodecFor(parts_.pull.full).EncodedSize(request.elements));
  while (channel.waits_for_versions()) {
    auto pulled = channel.session().With(
        [&](const MemberRef& member) { return channel.connection().Pull(member, request, channel.payload); },
        &channel.connection());
    answer.status = pulled.status();
    if (!pulled.ok()) return;
    answer.waited += pulled->waited;
    if (pulled->outcome == PullOutcome::kNotYet) continue;
    if (pulled->outcome == PullOutcome::kParameters) {
      const absl::StatusOr<bool> decoded = Decode(channel, *pulled, request);
      answer.status = decoded.status();
      if (decoded.ok() && !*decoded) continue;
    }
    answer.pulled = *std::move(pulled);
    return;
  }
  answer.status = absl::CancelledError("the worker no longer waits for the next version");
}

absl::StatusOr<bool> FragmentExchange::Decode(ExchangeChannel& channel, const PulledVersion& pulled,
                                              PullRequest& request) {
  const Spending spending(channel.time(), TimeUse::kApply);
  ATOLL_RETURN_IF_ERROR(CheckEpoch(pulled, channel.session().member().epoch));
  ATOLL_ASSIGN_OR_RETURN(const Landing landing, Land(request, pulled, channel.payload, buffer_));
  request.call.have = landing == Landing::kAstray ? std::nullopt : std::optional(pulled.version);
  return landing == Landing::kThere;
}

}  // namespace atl
