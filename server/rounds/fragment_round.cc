#include "server/rounds/fragment_round.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "server/rejection.h"

namespace atl {
namespace {

// A worker that came while its round was being closed asks again after so long.
constexpr Duration kNextRound = Seconds(0.1);

}  // namespace

FragmentRound::FragmentRound(FragmentLayout layout, Epoch epoch, const RunConfigs* configs)
    : layout_(std::make_shared<const FragmentLayout>(std::move(layout))),
      epoch_(epoch),
      configs_(configs),
      config_(configs->newest()),
      past_(epoch) {}

std::set<CodecKind> FragmentRound::push_codecs() const {
  std::set<CodecKind> codecs = configs_->PushCodecsFrom(config_->version);
  if (codec_before_) codecs.insert(*codec_before_);
  return codecs;
}

void FragmentRound::Open(Version head, const Membership& membership, MonoTime now) {
  codec_before_ = config_->run.push_codec;
  OpenWith(configs_->newest(), head, membership, now);
}

void FragmentRound::Reopen(Version head, ConfigPtr opened_with, const Membership& membership, MonoTime now) {
  codec_before_.reset();
  OpenWith(std::move(opened_with), head, membership, now);
}

void FragmentRound::OpenWith(ConfigPtr config, Version head, const Membership& membership, MonoTime now) {
  verdict.Opened(now);
  config_ = std::move(config);
  closing_.reset();
  close_now.clear();
  for (const ContributionKey& key : excluded_) left_out_.insert({key.worker, key.base});
  excluded_.clear();
  active_at_open_ = static_cast<uint32_t>(membership.active_trainers());
  round_.emplace(RoundOpening{.epoch = epoch_,
                              .fragment = layout_->id,
                              .base = head,
                              .opened_at = now,
                              .members = membership.LiveTrainers(),
                              .awaits_first_join = !membership.counts().had_live_trainer},
                 config_->run.round);
}

RoundOptions FragmentRound::rules() const {
  RoundOptions rules = grace.Applied(config_->run.round);
  rules.minimum = std::min(rules.minimum, configs_->run().round.minimum);
  return rules;
}

void FragmentRound::ResumeFinished(const Membership& membership, MonoTime now) {
  finished_ = false;
  if (!Idle()) return round_->Resumed(now);
  Open(head(), membership, now);
  round_->AwaitFirstJoin();
}

uint64_t FragmentRound::Lateness(Version base) const {
  return head().value() + (closing() ? 1 : 0) - base.value();
}

bool FragmentRound::Admissible(Version base) const {
  if (finished_ || !round_ || base > head() || base < past_.remembered_from()) return false;
  return Lateness(base) <= config_->run.round.staleness_limit;
}

std::string FragmentRound::WhyStale(const ContributionKey& key) const {
  if (past_.Find(key.base, key.worker) != nullptr)
    return "is not the one that counts: another contribution of the worker on this base is in a version "
           "already";
  if (left_out_.contains({key.worker, key.base}))
    return "was left out of its round, and counts in no later one";
  if (finished_) return "came too late: the run is finished";
  if (key.base < past_.remembered_from())
    return "came too late: the coordinator no longer knows who contributed to this base";
  std::string why = closing() && key.base == head()
                        ? "came too late: its round has closed and is being committed"
                        : "came too late: a newer version is published";
  const uint32_t limit = config_->run.round.staleness_limit;
  if (limit > 0 && Lateness(key.base) > limit)
    why += absl::StrFormat(", and it would be late by more than the %d versions allowed", limit);
  return why;
}

absl::Status FragmentRound::Stale(const ContributionKey& key) const {
  // While a round is being closed, the version that is about to appear is the one to wait for.
  const Version adopt = closing() ? Next(head()) : head();
  return Reject(Rejection{.reason = RejectionReason::kStaleBase,
                          .metadata = {{kHeadVersionKey, std::to_string(adopt.value())}},
                          .retry_after = std::nullopt},
                absl::StrFormat(
                    "the contribution of worker '%s' to fragment %d on base version %d %s; adopt version %d",
                    key.worker, key.fragment.value(), key.base.value(), WhyStale(key), adopt.value()));
}

absl::StatusOr<Round::Arrival> FragmentRound::Check(const Contribution& contribution) const {
  const ContributionKey& key = contribution.key;
  if (key.base > head()) {
    return Reject(
        RejectionReason::kUnknownBase,
        absl::StrFormat("worker '%s' contributes to base version %d of fragment %d, whose head is %d; pull "
                        "again",
                        key.worker, key.base.value(), key.fragment.value(), head().value()));
  }
  if (const Contribution* past = past_.Find(key.base, key.worker); past != nullptr) {
    if (SameContent(*past, contribution)) return Round::Arrival::kDuplicate;
    return Stale(key);
  }
  if (!round_ || left_out_.contains({key.worker, key.base})) return Stale(key);
  if (Accepting(key.worker, key.base)) {
    return WithRetryAfter(
        absl::UnavailableError(
            absl::StrFormat("an earlier upload of worker '%s' is just being written; ask again", key.worker)),
        Seconds(0.2));
  }
  if (finished_) return Stale(key);
  auto arrival = round_->Check(contribution);
  if (absl::IsAlreadyExists(arrival.status())) {
    return Reject(RejectionReason::kAlreadyPushed, std::string(arrival.status().message()));
  }
  if (arrival.ok() && *arrival == Round::Arrival::kAccepted && !Admissible(key.base)) return Stale(key);
  return arrival;
}

absl::Status FragmentRound::BeginAccept(const Contribution& contribution) {
  const auto arrival = Check(contribution);
  if (!arrival.ok()) return arrival.status();
  if (*arrival == Round::Arrival::kDuplicate) {
    return absl::AlreadyExistsError(
        absl::StrFormat("the contribution of worker '%s' is here already", contribution.key.worker));
  }
  if (closing()) {
    return WithRetryAfter(
        absl::UnavailableError(absl::StrFormat(
            "version %d is just being committed; the contribution of worker '%s' will count in the round "
            "after it: ask again",
            head().value() + 1, contribution.key.worker)),
        kNextRound);
  }
  accepting_.insert({contribution.key.worker, contribution.key.base});
  return absl::OkStatus();
}

void FragmentRound::EndAccept(const Contribution& contribution, bool durable, MonoTime now) {
  accepting_.erase({contribution.key.worker, contribution.key.base});
  // The round cannot have changed: it closes only when no acceptance is in flight.
  if (durable) (void)round_->Arrived(contribution, now);
}

PushStage FragmentRound::StateOf(Version base, const WorkerName& worker) const {
  if (base > head()) return PushStage::kUnknown;
  if (past_.Find(base, worker) != nullptr) return PushStage::kCommitted;
  if (Accepting(worker, base)) return PushStage::kPartial;
  if (round() != nullptr && round()->HasArrived(worker, base)) return PushStage::kAccepted;
  return Admissible(base) ? PushStage::kUnknown : PushStage::kMissed;
}

std::optional<ClosedRound> FragmentRound::BeginClose(MonoTime now) {
  if (!closing_) closing_ = Closing{.reason = verdict.decision().reason, .at = now};
  if (!accepting_.empty() || !round_) return std::nullopt;
  ClosedRound closed{.config = config_, .reason = closing_->reason, .contributions = round_->Contributions()};
  std::erase_if(closed.contributions, [&](const Contribution& c) { return excluded_.contains(c.key); });
  return closed;
}

}  // namespace atl
