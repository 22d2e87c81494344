#include "server/run/rounds.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "common/human.h"
#include "common/planted_defect.h"

namespace atl {

RoundDecision Rounds::Decide(FragmentId id, MonoTime now, Effects& effects) {
  MutexLock lock(&core_.mutex);
  RoundDecision wait;
  if (id.value() >= core_.fragments.size()) return wait;
  FragmentRound& fragment = core_.fragments[id.value()];
  if (fragment.round() == nullptr) return wait;
  if (fragment.closing()) return fragment.verdict.decision();
  if (std::optional<RoundDecision> ordered = control_.Decision(fragment)) {
    fragment.verdict.Ordered(*std::move(ordered));
    return fragment.verdict.decision();
  }
  const RunHealth before = fragment.verdict.decision().health;
  const RoundView& view = fragment.round()->View(now, core_.members.membership());
  RoundDecision decision = ::atl::Decide(now, view, Rules(fragment, view));
  fragment.verdict.Decided(decision, view, now);
  if (decision.action == RoundDecision::Action::kHold && before != decision.health) {
    effects.Event(EventKind::kRunHeld, "", absl::StrFormat("fragment %d: %s", id.value(), decision.reason));
    effects.events.back().fragment = id;
    effects.events.back().version = fragment.head();
  }
  return decision;
}

RoundOptions Rounds::Rules(const FragmentRound& fragment, const RoundView& view) const {
  RoundOptions rules = fragment.rules();
  if (Planted(PlantedDefect::kIgnoresDeadline)) rules.deadline = 10 * rules.deadline;
  const SyncOptions& sync = fragment.config().run.sync;
  if (sync.mode != SyncMode::kOverlapped || rules.grace_mode != GraceMode::kAdaptive) return rules;
  const std::optional<MonoTime> quorum_at = QuorumReachedAt(view, rules);
  if (!quorum_at) return rules;
  const ArrivalView& first = view.arrived.front();
  const double pace = core_.members.assignments().steps_per_second(first.worker);
  if (pace > 0) {
    rules.grace = OverlapGrace(sync.delay_steps, pace, *quorum_at - first.at,
                               Seconds(core_.statistics.CommitSeconds()));
  }
  return rules;
}

std::optional<ClosedRound> Rounds::BeginClose(FragmentId fragment, MonoTime now) {
  MutexLock lock(&core_.mutex);
  return core_.fragments[fragment.value()].BeginClose(now);
}

void Rounds::Exclude(FragmentId id, const Contribution& contribution, const std::string& why,
                     Effects& effects) {
  MutexLock lock(&core_.mutex);
  const WorkerName& worker = contribution.key.worker;
  FragmentRound& fragment = core_.fragments[id.value()];
  fragment.Exclude(contribution.key);
  core_.members.assignments().Excluded(contribution, fragment.round()->Contributions());
  ++core_.members.account(worker).rejected;
  core_.offences.Rejected(id, worker, Offence::kNotFinite);
  effects.Event(EventKind::kContributionRefused, worker, why);
  effects.events.back().fragment = id;
  effects.events.back().version = contribution.key.base;
}

uint64_t Rounds::TokensAfter(FragmentId fragment, const std::vector<Contribution>& contributions) const {
  MutexLock lock(&core_.mutex);
  uint64_t tokens = core_.statistics.committed_tokens(fragment);
  for (const Contribution& contribution : contributions) tokens += contribution.tokens;
  return tokens;
}

std::vector<PartitionEntry> Rounds::PartitionsAfter(FragmentId fragment,
                                                    const std::vector<Contribution>& contributions) const {
  MutexLock lock(&core_.mutex);
  return core_.members.assignments().After(fragment, contributions);
}

std::vector<ContributionAudit> Rounds::Audit(FragmentId fragment,
                                             const std::vector<Contribution>& contributions,
                                             const MergeFindings& findings) const {
  MutexLock lock(&core_.mutex);
  const OffenderOptions& options = core_.fragments[fragment.value()].config().run.offenders;
  return core_.offences.Audit(options, fragment, contributions, findings);
}

std::vector<FragmentId> Rounds::Committed(const RoundRecord& record, MonoTime now, Effects& effects) {
  MutexLock lock(&core_.mutex);
  FragmentRound& fragment = core_.fragments[record.fragment.value()];
  const double commit_seconds = ToSeconds(now - fragment.closing()->at);
  const double open_seconds = std::max(0.0, ToSeconds(now - fragment.round()->opened_at()) - commit_seconds);
  const std::optional<double> idle_seconds =
      core_.training_time.IdleSeconds(*fragment.round(), core_.configs.run().round.lease, core_.members);
  if (record.fragment == FragmentId(0)) core_.training_time.RoundClosed();
  RoundSummaryView summary =
      core_.statistics.Close(record, fragment.layout(), open_seconds, commit_seconds, idle_seconds);
  core_.privacy.Note(record);
  if (const auto privacy = core_.Privacy(); privacy && privacy->epsilon) {
    summary.epsilon = *privacy->epsilon;
    core_.statistics.NoteEpsilon(summary.epsilon);
  }
  core_.members.assignments().Committed(record.fragment, record.contributions);
  fragment.grace.Closed(fragment.verdict.closing_view(), fragment.config().run.round);
  fragment.Committed(record);
  fragment.Open(record.version, core_.members.membership(), now);
  effects.Event(EventKind::kRoundClosed, "",
                absl::StrFormat("version %d from %s: %s", record.version.value(),
                                Counted(summary.contributions, "contribution"), record.close_reason));
  effects.events.back().fragment = record.fragment;
  effects.events.back().version = record.version;
  effects.events.back().round = summary;
  NoteOffences(record, now, effects);
  std::vector<FragmentId> done = progress_.FinishCompleted(now);
  progress_.AnnounceEnd(now, effects);
  return done;
}

void Rounds::NoteOffences(const RoundRecord& record, MonoTime now, Effects& effects) {
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
  member_actions_.BanByRule(core_.offences.Note(core_.configs.run().offenders, record), now, effects);
}

void Rounds::AwaitStorage(FragmentId fragment) {
  MutexLock lock(&core_.mutex);
  FragmentRound& awaiting = core_.fragments[fragment.value()];
  awaiting.verdict.AwaitStorage(awaiting.head());
}

void Rounds::Stored(FragmentId fragment, Version version) {
  MutexLock lock(&core_.mutex);
  core_.fragments[fragment.value()].stored = version;
}

}  // namespace atl
