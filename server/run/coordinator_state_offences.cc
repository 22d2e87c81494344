#include <algorithm>

#include "absl/strings/str_format.h"
#include "server/rejection.h"
#include "server/run/coordinator_state.h"

// Offences: what is noted of a round, and whom the rule bans.

namespace atl {

void CoordinatorState::RejectedFor(Offence offence, const PushCall& call) {
  MutexLock lock(&mutex_);
  const WorkerName& worker = call.caller.worker;
  if (members_.membership().Find(worker) == nullptr || call.fragment.value() >= fragments_.size()) return;
  offences_.Rejected(call.fragment, worker, offence);
  Round* const round = fragments_[call.fragment.value()].round();
  if (round != nullptr && round->base() == call.base) round->Rejected(worker);
}

absl::Status CoordinatorState::CheckReplay(const Contribution& contribution) const {
  MutexLock lock(&mutex_);
  const FragmentRound& fragment = fragments_[contribution.key.fragment.value()];
  if (!fragment.config().run.offenders.measures()) return absl::OkStatus();
  const Contribution* earlier = fragment.FindSame(contribution);
  if (earlier == nullptr) return absl::OkStatus();
  return Reject(
      RejectionReason::kAlreadyPushed,
      absl::StrFormat("worker '%s' pushes for version %d the very bytes that it pushed for version %d",
                      contribution.key.worker, contribution.key.base.value(), earlier->key.base.value()));
}

std::vector<ContributionAudit> CoordinatorState::Audit(FragmentId fragment,
                                                       const std::vector<Contribution>& contributions,
                                                       const MergeFindings& findings) const {
  MutexLock lock(&mutex_);
  const OffenderOptions& options = fragments_[fragment.value()].config().run.offenders;
  return offences_.Audit(options, fragment, contributions, findings);
}

void CoordinatorState::NoteOffences(const RoundRecord& record, MonoTime now, Effects& effects) {
  for (const ContributionAudit& audit : record.audits) {
    for (const Offence offence : kOffences) {
      if ((audit.offences & static_cast<uint8_t>(offence)) != 0) effects.offences.push_back(offence);
    }
    // What was refused was announced then.
    constexpr auto kJudged = static_cast<uint8_t>(Offence::kNorm) | static_cast<uint8_t>(Offence::kDistance) |
                             static_cast<uint8_t>(Offence::kDirection);
    if ((audit.offences & kJudged) == 0) continue;
    effects.Event(EventKind::kContributionSuspect, audit.worker,
                  absl::StrFormat("the contribution of worker '%s' to version %d is not like the others: %s",
                                  audit.worker, record.version.value(), Evidence(audit)));
    effects.events.back().fragment = record.fragment;
    effects.events.back().version = record.version;
  }
  BanByRule(offences_.Note(config_->run.offenders, record), now, effects);
}

void CoordinatorState::BanByRule(const std::vector<OffenceTracker::Ban>& bans, MonoTime now,
                                 Effects& effects) {
  for (const OffenceTracker::Ban& ban : bans) {
    if (members_.membership().Find(ban.worker) == nullptr || members_.banned(ban.worker)) continue;
    ++effects.banned_by_rule;
    Ban(ban.worker, absl::StrFormat("%s; `atollctl workers unban %s` lets it back", ban.why, ban.worker), now,
        effects);
  }
}

void CoordinatorState::RestoreOffences(const Recovery& recovery) {
  for (const WorkerEntry& entry : recovery.workers) {
    offences_.Forgive(entry.name, Version(entry.forgiven_until));
  }
  std::vector<const RoundRecord*> records;
  for (const RoundRecord& record : recovery.rounds) {
    if (record.epoch == identity_.epoch) records.push_back(&record);
    privacy_.Note(record);
  }
  std::ranges::stable_sort(records, {}, [](const RoundRecord* record) { return record->closed_unix_ns; });
  for (const RoundRecord* record : records) {
    // Who was due for the last one may not have been written down as banned any more.
    due_bans_ = offences_.Note(config_->run.offenders, *record);
  }
}

}  // namespace atl
