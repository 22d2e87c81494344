#include "server/run/member_calls.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/planted_defect.h"
#include "common/status.h"
#include "core/known_loss.h"
#include "server/members/member_lists.h"
#include "server/rejection.h"

namespace atl {
namespace {

std::string LastPushText(const WorkerAccount& account) {
  if (account.last_pushes.empty()) return "it had nothing to push";
  for (const auto& [fragment, push] : account.last_pushes) {
    if (push.counted) continue;
    return absl::StrFormat("its last push, on version %d of fragment %d, came too late and does not count",
                           push.base.value(), fragment.value());
  }
  const auto& [fragment, push] = *account.last_pushes.begin();
  return absl::StrFormat("its last push, on version %d of fragment %d, counted", push.base.value(),
                         fragment.value());
}

std::string RanksText(WorkerRole role, uint32_t ranks, const RunOptions& run) {
  if (ranks <= 1) return "";
  if (role != WorkerRole::kTrainer) return absl::StrFormat(" with %d ranks", ranks);
  std::string text = absl::StrFormat(
      " with %d ranks: its contributions count up to %d times the tokens of one", ranks, ranks);
  if (run.outer.optimizer == OuterOptimizerKind::kDelayedNesterov && run.outer.delay == run.workers) {
    absl::StrAppendFormat(&text,
                          "; outer.delay is %d, as run.workers, but is to be the number of islands: the run "
                          "learns more slowly than it should",
                          run.outer.delay);
  }
  return text;
}

}  // namespace

absl::StatusOr<JoinReply> MemberCalls::Join(const JoinCall& call, MonoTime now, Effects& effects) {
  MutexLock lock(&core_.mutex);
  auto joined = Admit(call, now, effects);
  if (joined.ok()) joined->member.worker = call.worker;
  if (joined.ok() || call.role == WorkerRole::kObserver) return joined;
  effects.joins_refused.push_back(ReasonText(joined.status()));
  if (!core_.rejected_joins.Note(call.worker, call.address, joined.status(), now)) return joined;
  effects.Event(
      EventKind::kJoinRefused, call.worker,
      absl::StrFormat("a worker is refused%s: %s", call.address.empty() ? "" : " (from " + call.address + ")",
                      std::string(joined.status().message())));
  return joined;
}

absl::Status MemberCalls::CheckRanks(const JoinCall& call) const {
  if (call.device.ranks <= core_.options.max_ranks) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("worker '%s' has %d ranks, and this coordinator takes at most %d in one worker, "
                      "because its contribution "
                      "counts as many times; start several workers, or the coordinator with --max-ranks %d",
                      call.worker, call.device.ranks, core_.options.max_ranks, call.device.ranks));
}

std::string MemberCalls::EarlyEndText(const JoinCall& call, const JoinOutcome& outcome,
                                      const DeviceDescription& before) const {
  // A member that comes back was told, unless it has more ranks now.
  const bool grown = !before.device.empty() && call.device.ranks > before.ranks;
  if (call.role != WorkerRole::kTrainer || call.device.ranks <= 1 || (outcome.returning && !grown)) return "";
  const RunOptions& run = core_.configs.run();
  const uint64_t ranks = core_.members.assignments().ActiveRanks(core_.members.membership());
  if (ranks <= run.workers) return "";
  return absl::StrFormat(
      "; %d ranks are here and run.workers is %d, so a round counts as %.3g rounds and the run ends before "
      "run.rounds (%d). run.workers counts all ranks: in a new run, set run.workers: %d and "
      "round.start_workers to the number of islands; in this one, for as many rounds of these ranks, "
      "'atollctl "
      "run extend %d'",
      ranks, run.workers, static_cast<double>(ranks) / run.workers, run.rounds, ranks,
      (uint64_t{run.rounds} * (ranks - run.workers) + run.workers - 1) / run.workers);
}

absl::StatusOr<JoinReply> MemberCalls::Admit(const JoinCall& call, MonoTime now, Effects& effects) {
  ATOLL_RETURN_IF_ERROR(core_.members.EnterJoin(call, now));
  ATOLL_RETURN_IF_ERROR(core_.members.CheckJoin(call, core_.model, now));
  // Who has yet to build the model asks for the configuration only: nobody waits for it, and it has no life
  // that a second Join would supersede.
  if (call.role == WorkerRole::kObserver) return DescribeToObserver();
  ATOLL_RETURN_IF_ERROR(CheckRanks(call));
  if (call.manifest_hash.empty()) return DescribeRun();

  const bool deserted = core_.members.membership().live_count(WorkerRole::kTrainer) == 0;
  const DeviceDescription before = core_.members.FindAccount(call.worker).device;
  ATOLL_ASSIGN_OR_RETURN(const JoinOutcome outcome, core_.members.Join(call, now));
  core_.rejected_joins.Joined(call.worker);
  if (outcome.partition_from) effects.members.push_back(*outcome.partition_from);
  effects.members.push_back(call.worker);
  effects.Event(outcome.returning ? EventKind::kWorkerReturned : EventKind::kWorkerJoined, call.worker,
                absl::StrFormat("%s '%s' %s%s", std::string(WorkerRoleName(call.role)), call.worker,
                                outcome.returning ? "is back" : "joined",
                                RanksText(call.role, call.device.ranks, core_.configs.run())) +
                    EarlyEndText(call, outcome, before));
  effects.rounds_changed = true;
  if (call.role == WorkerRole::kTrainer) {
    if (deserted) core_.training_time.Began(now);
    for (FragmentRound& fragment : core_.fragments) {
      if (fragment.round()) fragment.round()->Joined(call.worker, now, core_.members.membership());
    }
  }
  core_.RefreshGrant(effects);

  JoinReply result = DescribeRun();
  result.member.incarnation = outcome.incarnation;
  result.returning = outcome.returning;
  result.seed_granted = !core_.model.known() && core_.grant.HeldBy(call.worker);
  if (outcome.partition)
    result.data = DataPartOf(core_.members, *core_.members.membership().Find(call.worker));
  for (const FragmentRound& fragment : core_.fragments) {
    if (fragment.round() == nullptr) continue;
    for (const ContributionKey& key : fragment.round()->KeysOf(call.worker)) {
      result.accepted.push_back(PushKeyOf(key));
    }
  }
  return result;
}

JoinReply MemberCalls::DescribeRun() const {
  // Who joins trains on the open round, and hears of a newer configuration with the plan of the next. It must
  // not be older than what the plan of any fragment names: its worker would ask again and again.
  const auto newest = std::ranges::max_element(
      core_.fragments, {}, [](const FragmentRound& fragment) { return fragment.config().version; });
  const ConfigSnapshot& config = newest == core_.fragments.end() ? *core_.configs.newest() : newest->config();
  JoinReply result;
  result.member.run_id = core_.identity.run_id;
  result.member.epoch = core_.identity.epoch;
  result.lease = core_.configs.run().round.lease;
  result.heartbeat = HeartbeatInterval();
  result.config_bytes = config.bytes;
  result.config_version = config.version;
  result.manifest_hash = core_.model.hash();
  // Nothing but the run says what an external model is.
  if (core_.configs.run().model.external() != nullptr) DescribeModel(result);
  result.fragments = core_.FragmentHeadList();
  result.state = views_.State();
  result.committed_tokens = core_.statistics.committed_tokens();
  result.total_tokens = core_.configs.run().total_tokens();
  return result;
}

JoinReply MemberCalls::DescribeToObserver() const {
  JoinReply result = DescribeRun();
  result.member.incarnation = kObserverIncarnation;
  DescribeModel(result);
  return result;
}

void MemberCalls::DescribeModel(JoinReply& reply) const {
  if (core_.model.known()) reply.manifest = core_.model.manifest();
}

absl::StatusOr<HeartbeatReply> MemberCalls::Heartbeat(const MemberRef& caller, const HeartbeatCall& call,
                                                      MonoTime now, int64_t unix_ns, Effects& effects) {
  MutexLock lock(&core_.mutex);
  if (caller.observes()) {
    ATOLL_RETURN_IF_ERROR(core_.members.CheckRun(caller));
    return HeartbeatReply{.lease = core_.configs.run().round.lease,
                          .state = views_.State(),
                          .fragments = core_.FragmentHeadList()};
  }
  ATOLL_RETURN_IF_ERROR(Renew(caller, now, effects));
  NoteHeartbeat(caller.worker, call, effects);
  evaluations_.Take(caller.worker, call, now, unix_ns, effects);
  core_.RefreshGrant(effects);
  const PendingCommand told = core_.members.command(caller.worker);
  return HeartbeatReply{.lease = core_.configs.run().round.lease,
                        .state = views_.State(),
                        .fragments = core_.FragmentHeadList(),
                        .seed_granted = !core_.model.known() && core_.grant.HeldBy(caller.worker),
                        .command = told.command,
                        .at_once = told.at_once};
}

void MemberCalls::NoteDevice(const WorkerName& worker, const DeviceDescription& device, Effects& effects) {
  WorkerAccount& account = core_.members.account(worker);
  // A Join is what says how many ranks a worker has. After a restart of the coordinator, a heartbeat must.
  const bool first = account.device.device.empty();
  const uint32_t ranks = first ? device.ranks : account.device.ranks;
  account.device = device;
  account.device.ranks = ranks;
  if (!first) return;
  core_.members.assignments().SetRanks(worker, ranks);
  const uint32_t most = core_.options.max_ranks;
  if (ranks <= most || core_.members.membership().Find(worker)->role != WorkerRole::kTrainer) return;
  effects.Event(
      EventKind::kUnknown, worker,
      absl::StrFormat("worker '%s' has %d ranks and counts as %d: the coordinator was started again "
                      "with --max-ranks %d. Start it with --max-ranks %d, or its other tokens are "
                      "not counted",
                      worker, ranks, most, most, ranks));
  effects.events.back().warns = true;
}

void MemberCalls::NoteHeartbeat(const WorkerName& worker, const HeartbeatCall& call, Effects& effects) {
  ProgressReport& progress = core_.members.account(worker).progress;
  progress = call.progress;
  progress.loss = KnownLoss(core_.configs.run().model, progress.loss);
  if (call.device) NoteDevice(worker, *call.device, effects);
  const WorkerRole role = core_.members.membership().Find(worker)->role;
  const WorkerPhase phase = call.progress.phase;
  const bool computing =
      phase == WorkerPhase::kTraining || phase == WorkerPhase::kEvaluating || phase == WorkerPhase::kPushing;
  if (role == WorkerRole::kTrainer && computing) {
    // After a restart of the coordinator nobody has pulled, as far as the new rounds know; who computes on
    // the base is waited for all the same.
    // Overlapped fragments have their own versions, and a computing worker contributes to each of them.
    const bool overlapped = core_.configs.run().sync.mode == SyncMode::kOverlapped;
    for (FragmentRound& fragment : core_.fragments) {
      const bool on_base = overlapped || fragment.head() == call.progress.base;
      if (fragment.round() && on_base) fragment.round()->Pulled(worker);
    }
  }
}

absl::Status MemberCalls::Leave(const MemberRef& caller, const std::string& reason, MonoTime now,
                                Effects& effects) {
  MutexLock lock(&core_.mutex);
  if (caller.observes()) return core_.members.CheckRun(caller);
  ATOLL_RETURN_IF_ERROR(core_.members.Check(caller));
  ATOLL_RETURN_IF_ERROR(core_.members.membership().Leave(caller.worker, caller.incarnation, now));
  core_.members.assignments().Left(caller.worker);
  effects.members.push_back(caller.worker);
  if (core_.members.command(caller.worker).command == WorkerCommand::kDrain) {
    core_.members.account(caller.worker).drained = true;
    effects.Event(EventKind::kWorkerDrained, caller.worker,
                  absl::StrFormat("worker '%s' has drained: %s", caller.worker,
                                  LastPushText(core_.members.account(caller.worker))));
  }
  core_.members.SetCommand(caller.worker, PendingCommand{});
  effects.Event(EventKind::kWorkerLeft, caller.worker,
                absl::StrFormat("worker '%s' left%s", caller.worker, reason.empty() ? "" : ": " + reason));
  effects.rounds_changed = true;
  core_.RefreshGrant(effects);
  progress_.AnnounceEnd(now, effects);
  return absl::OkStatus();
}

absl::Status MemberCalls::Renew(const MemberRef& caller, MonoTime now, Effects& effects) {
  const bool deserted = core_.members.membership().live_count(WorkerRole::kTrainer) == 0;
  ATOLL_ASSIGN_OR_RETURN(const bool returned, core_.members.Renew(caller, now));
  if (!returned) return absl::OkStatus();
  effects.members.push_back(caller.worker);
  effects.Event(EventKind::kWorkerReturned, caller.worker,
                absl::StrFormat("worker '%s' is heard of again", caller.worker));
  effects.rounds_changed = true;
  const Member* member = core_.members.membership().Find(caller.worker);
  if (member->role == WorkerRole::kTrainer) {
    if (deserted) core_.training_time.Began(now);
    for (FragmentRound& fragment : core_.fragments) {
      if (fragment.round()) fragment.round()->Revived(caller.worker, now, core_.members.membership());
    }
    core_.RefreshGrant(effects);
  }
  return absl::OkStatus();
}

void MemberCalls::ExpireLeases(MonoTime now, Effects& effects) {
  const bool nobody_expires = Planted(PlantedDefect::kWaitsForTheDead);
  for (const WorkerName& lost :
       nobody_expires ? std::vector<WorkerName>() : core_.members.membership().Expire(now)) {
    effects.members.push_back(lost);
    effects.Event(
        EventKind::kWorkerLost, lost,
        absl::StrFormat("worker '%s' was silent for %.1f s; it is not waited for until it comes back", lost,
                        ToSeconds(core_.configs.run().round.lease)));
    effects.rounds_changed = true;
  }
}

std::optional<WorkerEntry> MemberCalls::Entry(const WorkerName& name) const {
  MutexLock lock(&core_.mutex);
  if (core_.members.membership().Find(name) == nullptr) return std::nullopt;
  return core_.Entry(name);
}

std::string MemberCalls::PublicKey(const WorkerName& worker) const {
  MutexLock lock(&core_.mutex);
  return core_.members.FindAccount(worker).public_key;
}

bool MemberCalls::IsTrainer(const WorkerName& worker) const {
  MutexLock lock(&core_.mutex);
  const Member* member = core_.members.membership().Find(worker);
  return member != nullptr && member->role == WorkerRole::kTrainer;
}

bool MemberCalls::IsLiveTrainer(const WorkerName& worker) const {
  MutexLock lock(&core_.mutex);
  const Member* member = core_.members.membership().Find(worker);
  return member != nullptr && member->live() && member->role == WorkerRole::kTrainer;
}

}  // namespace atl
