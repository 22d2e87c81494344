#include "server/rounds/fragment_round.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "server/rejection.h"

namespace atl {
namespace {

// Versions that contributions are remembered for at least, so that a push whose answer was lost is known
// again.
constexpr uint64_t kPastVersions = 64;
// A worker that came while its round was being closed asks again after so long.
constexpr Duration kNextRound = Seconds(0.1);

bool SameContent(const Contribution& a, const Contribution& b) {
  return a.codec == b.codec && a.payload_bytes == b.payload_bytes && a.payload_crc32c == b.payload_crc32c;
}

}  // namespace

FragmentRound::FragmentRound(FragmentLayout layout, Epoch epoch, const RunConfigs* configs)
    : layout_(std::move(layout)), epoch_(epoch), configs_(configs), config_(configs->newest()) {}

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
  decided_since_ = now;
  config_ = std::move(config);
  closing_.reset();
  close_now.clear();
  awaits_storage_ = false;
  for (const ContributionKey& key : excluded_) left_out_.insert({key.worker, key.base});
  excluded_.clear();
  closing_view_ = RoundView{};
  active_at_open_ = static_cast<uint32_t>(membership.active_trainers());
  round_.emplace(RoundOpening{.epoch = epoch_,
                              .fragment = layout_.id,
                              .base = head,
                              .opened_at = now,
                              .members = membership.LiveTrainers()},
                 config_->run.round);
}

RoundOptions FragmentRound::rules() const {
  RoundOptions rules = grace.Applied(config_->run.round);
  rules.minimum = std::min(rules.minimum, configs_->run().round.minimum);
  return rules;
}

void FragmentRound::ResumeFinished(const Membership& membership, MonoTime now) {
  finished_ = false;
  if (Idle()) return Open(head(), membership, now);
  round_->Resumed(now);
}

uint64_t FragmentRound::Lateness(Version base) const {
  return head().value() + (closing() ? 1 : 0) - base.value();
}

bool FragmentRound::Admissible(Version base) const {
  if (finished_ || !round_ || base > head() || base < remembered_from_) return false;
  return Lateness(base) <= config_->run.round.staleness_limit;
}

absl::Status FragmentRound::Stale(const ContributionKey& key) const {
  // While a round is being closed, the version that is about to appear is the one to wait for.
  const Version adopt = closing() ? Next(head()) : head();
  std::string why = finished_   ? "the run is finished"
                    : closing() ? "its round has closed and is being committed"
                                : "a newer version is published";
  if (const uint32_t limit = config_->run.round.staleness_limit; limit > 0 && !finished_) {
    why += absl::StrFormat(", and it would be late by more than the %d versions allowed", limit);
  }
  return Reject(
      Rejection{.reason = RejectionReason::kStaleBase,
                .metadata = {{kHeadVersionKey, std::to_string(adopt.value())}},
                .retry_after = std::nullopt},
      absl::StrFormat(
          "the contribution of worker '%s' to fragment %d on base version %d came too late: %s; adopt "
          "version %d",
          key.worker, key.fragment.value(), key.base.value(), why, adopt.value()));
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
  if (const Contribution* past = FindCommitted(key.base, key.worker); past != nullptr) {
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
  if (durable) Readmit(contribution, now);
}

void FragmentRound::Readmit(const Contribution& contribution, MonoTime now) {
  (void)round_->Arrived(contribution, now);
}

void FragmentRound::Decided(RoundDecision decision, const RoundView& view, MonoTime now) {
  if (decision.action != decision_.action) decided_since_ = now;
  awaits_storage_ = false;
  if (decision.action == RoundDecision::Action::kClose) closing_view_ = view;
  decision_ = std::move(decision);
}

void FragmentRound::AwaitStorage() {
  awaits_storage_ = true;
  decision_.reason =
      absl::StrFormat("ready to close (%s); waiting for the tensors of version %d to be written to disk",
                      decision_.reason, head().value());
}

std::optional<ClosedRound> FragmentRound::BeginClose(MonoTime now) {
  if (!closing_) closing_ = Closing{.reason = decision_.reason, .at = now};
  if (!accepting_.empty() || !round_) return std::nullopt;
  ClosedRound closed{.config = config_, .reason = closing_->reason, .contributions = round_->Contributions()};
  std::erase_if(closed.contributions, [&](const Contribution& c) { return excluded_.contains(c.key); });
  return closed;
}

void FragmentRound::Committed(const RoundRecord& record) {
  if (record.epoch == epoch_ && record.contributions.empty()) {
    // A restore: nobody of this epoch can have begun on an earlier version.
    remembered_from_ = std::max(remembered_from_, record.version);
    return;
  }
  // What was begun before a restore can never enter, under whatever epoch it comes: a restore makes a version
  // of no contributions.
  if (record.contributions.empty()) remembered_from_ = std::max(remembered_from_, record.version);
  if (record.epoch != epoch_) return;
  for (const Contribution& c : record.contributions) committed_[{c.key.base, c.key.worker}] = c;
  const uint64_t kept = std::max<uint64_t>(kPastVersions, config_->run.round.staleness_limit);
  if (record.version.value() <= kept) return;
  remembered_from_ = std::max(remembered_from_, Version(record.version.value() - kept));
  while (!committed_.empty() && committed_.begin()->first.first < remembered_from_) {
    committed_.erase(committed_.begin());
  }
}

const Contribution* FragmentRound::FindCommitted(Version base, const WorkerName& worker) const {
  const auto it = committed_.find({base, worker});
  return it == committed_.end() ? nullptr : &it->second;
}

const Contribution* FragmentRound::FindSame(const Contribution& contribution) const {
  if (contribution.norm == 0 || committed_.empty()) return nullptr;
  const Version newest = committed_.rbegin()->first.first;
  for (Version base = committed_.begin()->first.first; base <= newest; base = Next(base)) {
    const Contribution* past = FindCommitted(base, contribution.key.worker);
    if (past == nullptr || base == contribution.key.base) continue;
    if (SameContent(*past, contribution) && past->norm == contribution.norm) return past;
  }
  return nullptr;
}

}  // namespace atl
