#include "worker/sync/fragment_exchange.h"

#include <algorithm>
#include <utility>

#include "common/status.h"
#include "common/trace_context.h"
#include "core/codec.h"
#include "worker/sync/rejection.h"

namespace atoll {
namespace {

/// One long poll.
constexpr Duration kPullWait = Seconds(5);

DeliveryReport NotFinite(const absl::Status& why) { return {.verdict = Verdict::kNotFinite, .refusal = why}; }

}  // namespace

bool FragmentExchange::StartPush(const PushOffer& claims, bool saves_round) {
  saves_round_ = saves_round;
  return Start(claims, claims.key.base);
}

bool FragmentExchange::StartPull(std::optional<Version> after) { return Start(std::nullopt, after); }

ExchangeAnswer FragmentExchange::PullHead() {
  parts_.runner->RunHere([this](ExchangeLane& lane) { Run(lane, std::nullopt, std::nullopt); });
  return Take();
}

bool FragmentExchange::Start(const std::optional<PushOffer>& claims, std::optional<Version> after) {
  acknowledged_ = !claims.has_value();
  away_ = true;
  away_ = parts_.runner->Start([this, claims, after](ExchangeLane& lane) { Run(lane, claims, after); });
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

void FragmentExchange::Run(ExchangeLane& lane, const std::optional<PushOffer>& claims,
                           std::optional<Version> after) {
  const ScopedTrace trace(NewTrace());
  ExchangeAnswer answer;
  if (!claims.has_value() || Push(lane, *claims, answer)) Pull(lane, after, answer);
  {
    const MutexLock lock(&mutex_);
    answer_ = std::move(answer);
  }
  parts_.runner->News();
}

absl::Status FragmentExchange::Encode(ExchangeLane& lane, const PushOffer& claims) {
  const Spending spending(lane.time(), TimeUse::kEncode);
  return parts_.packer->Encode(claims, buffer_);
}

bool FragmentExchange::Push(ExchangeLane& lane, const PushOffer& claims, ExchangeAnswer& answer) {
  const MemberRef member = lane.session().member();
  const absl::Status encoded = Encode(lane, claims);
  if (absl::IsInvalidArgument(encoded)) {
    acknowledged_ = true;
    answer.report = NotFinite(encoded);
    return false;
  }
  answer.status = encoded;
  if (!encoded.ok()) return false;
  parts_.keeper->Keep(member.epoch, *parts_.packer, lane.time());
  if (saves_round_) parts_.continuity->disk->SaveRound();
  if (parts_.continuity->key != nullptr) {
    const Spending spending(lane.time(), TimeUse::kEncode);
    const FragmentBase& base = *parts_.base;
    Confirm(*parts_.continuity, member, base, HashPublished(base.values, parts_.pull.full, lane.payload),
            *parts_.board);
  }
  auto report = lane.delivery().Deliver(parts_.packer->offer(), parts_.packer->payload());
  answer.status = report.status();
  if (!report.ok()) return false;
  const bool old_codec = HasOldCodec(*report);
  if (!old_codec) parts_.keeper->Settle(*parts_.packer, *report, lane.time());
  const bool goes_on = report->verdict != Verdict::kNotFinite && !old_codec;
  answer.report = *std::move(report);
  acknowledged_ = true;
  parts_.runner->News();
  return goes_on;
}

void FragmentExchange::Pull(ExchangeLane& lane, std::optional<Version> after, ExchangeAnswer& answer) {
  const uint64_t elements = buffer_.size();
  PullWish wish{.fragment = parts_.base->layout.id,
                .after = after,
                .wait = kPullWait,
                .elements = elements,
                .codec = parts_.pull.full};
  wish.zstd = parts_.pull.zstd;
  if (parts_.pull.delta.has_value() && after.has_value() && after == parts_.base->version) {
    std::ranges::copy(parts_.base->values, buffer_.begin());
    wish.have = after;
    wish.delta_codec = *parts_.pull.delta;
  }
  lane.payload.resize(CodecFor(parts_.pull.full).EncodedSize(elements));
  while (lane.waits_for_versions()) {
    auto pulled = lane.session().With(
        [&](const MemberRef& member) { return lane.connection().Pull(member, wish, lane.payload); },
        &lane.connection());
    answer.status = pulled.status();
    if (!pulled.ok()) return;
    answer.waited += pulled->waited;
    if (pulled->kind == PullKind::kNotYet) continue;
    if (pulled->kind == PullKind::kParameters) {
      const absl::StatusOr<bool> decoded = Decode(lane, *pulled, wish);
      answer.status = decoded.status();
      if (decoded.ok() && !*decoded) continue;
    }
    answer.pulled = *std::move(pulled);
    return;
  }
  answer.status = absl::CancelledError("the worker no longer waits for the next version");
}

absl::StatusOr<bool> FragmentExchange::Decode(ExchangeLane& lane, const PulledVersion& pulled,
                                              PullWish& wish) {
  const Spending spending(lane.time(), TimeUse::kApply);
  if (pulled.epoch != lane.session().member().epoch) {
    return WithRejection(absl::AbortedError("the run was restored; its new epoch has to be joined"),
                         RefusalReason::kWrongEpoch);
  }
  ATOLL_ASSIGN_OR_RETURN(const Landing landing, Land(wish, pulled, lane.payload, buffer_));
  wish.have = landing == Landing::kAstray ? std::nullopt : std::optional(pulled.version);
  return landing == Landing::kThere;
}

}  // namespace atoll
