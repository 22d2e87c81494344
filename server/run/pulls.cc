#include "server/run/pulls.h"

#include <algorithm>
#include <span>

#include "absl/strings/str_format.h"
#include "common/status.h"
#include "server/members/member_lists.h"

namespace atl {

absl::Status Pulls::CheckPull(const MemberRef& caller, FragmentId fragment, MonoTime now, Effects& effects) {
  MutexLock lock(&core_.mutex);
  if (caller.observes()) {
    ATOLL_RETURN_IF_ERROR(core_.members.CheckRun(caller));
    return core_.CheckFragment(fragment);
  }
  ATOLL_RETURN_IF_ERROR(member_calls_.Renew(caller, now, effects));
  ATOLL_RETURN_IF_ERROR(core_.CheckFragment(fragment));
  return core_.CheckModel(caller.worker);
}

void Pulls::NoteLostVersions(const WorkerName& worker, FragmentId fragment, Version after, Version head,
                             MonoTime now, Effects& effects) {
  MutexLock lock(&core_.mutex);
  if (core_.members.membership().Find(worker) == nullptr ||
      !core_.members.account(worker).rejections.Allow(now))
    return;
  effects.Event(EventKind::kReplicaDiverged, worker,
                absl::StrFormat(
                    "worker '%s' has version %d of fragment %d, whose head is %d: the data directory is an "
                    "older copy of itself, and the versions from %d to %d are lost; the worker goes on from "
                    "the head",
                    worker, after.value(), fragment.value(), head.value(), head.value() + 1, after.value()));
  effects.events.back().fragment = fragment;
  effects.events.back().version = head;
}

bool Pulls::AssignEvaluation(const Member& member, Version version, bool last) {
  EvaluationAssignment& assignment = core_.evaluation_assignment;
  if (!assignment.Wanted(member.role, version, last)) return false;
  // Evaluators all do it. Among trainers, nobody else comes into question while the holder is live.
  if (member.role == WorkerRole::kEvaluator) {
    return assignment.Assign(member.name, member.role, version, last, {});
  }
  const WorkerName holder = assignment.Holder(version);
  const Member* const held = core_.members.membership().Find(holder);
  if (held != nullptr && held->live() && held->role == WorkerRole::kTrainer) {
    return assignment.Assign(member.name, member.role, version, last, std::span(&holder, 1));
  }
  return assignment.Assign(member.name, member.role, version, last,
                           LiveOf(core_.members, WorkerRole::kTrainer));
}

RoundPlan Pulls::Deliver(const WorkerName& worker, FragmentId id, Version version, uint64_t committed_tokens,
                         MonoTime now) {
  MutexLock lock(&core_.mutex);
  FragmentRound& fragment = core_.fragments[id.value()];
  RoundPlan plan{.inner_steps = fragment.config().run.inner.steps,
                 .active_workers = 1,
                 .committed_tokens = committed_tokens,
                 .total_tokens = core_.configs.run().total_tokens()};
  const Member* member = core_.members.membership().Find(worker);
  if (member == nullptr) return plan;
  plan.active_workers = PlannedWorkers(fragment, now);
  FillPlan(*member, fragment, version, now, plan);
  if (version != fragment.head()) return plan;
  plan.config_version = fragment.config().version;
  if (core_.members.command(worker).command == WorkerCommand::kResync) {
    core_.members.SetCommand(worker, PendingCommand{});  // it has the head now
  }
  if (Round* round = fragment.round(); round != nullptr) {
    if (member->role == WorkerRole::kTrainer) round->Pulled(worker);
    const MonoTime start = round->Gathering(now) ? now : round->StartedAt(now);
    plan.deadline = std::max(Duration(0), start + fragment.config().run.round.deadline - now);
  }
  if (id == FragmentId(0)) {
    plan.evaluate = AssignEvaluation(*member, version, fragment.finished());
    plan.run_tasks = plan.evaluate && core_.evaluation_assignment.TasksDue(version, fragment.finished());
  }
  return plan;
}

uint32_t Pulls::PlannedWorkers(const FragmentRound& fragment, MonoTime now) const {
  const Membership& membership = core_.members.membership();
  // Ranks, because a step of a worker of several moves the schedule as that many workers would.
  const auto active = static_cast<uint32_t>(core_.members.assignments().ActiveRanks(membership));
  const auto here = static_cast<uint32_t>(membership.active_trainers());
  const uint32_t more = active - here;
  const bool gathering = fragment.round() != nullptr && fragment.round()->Gathering(now);
  if (gathering) {
    // The first to pull version 0 must not take itself for the only one. Those who have yet to come are taken
    // for islands of as many ranks as those that are here.
    const uint32_t missing = std::max(fragment.config().run.round.start_workers, here) - here;
    const uint32_t each = here > 0 ? (active + here - 1) / here : 1;
    return std::max(active + missing * each, 1U);
  }
  if (fragment.head() == Version(0)) return std::max(active, 1U);
  // Fixed with the version, so that all who train on it are at the same learning rate.
  return std::max(fragment.active_at_open() > 0 ? fragment.active_at_open() + more : active, 1U);
}

void Pulls::FillPlan(const Member& member, const FragmentRound& fragment, Version version, MonoTime now,
                     RoundPlan& plan) {
  if (member.role != WorkerRole::kTrainer || fragment.finished()) return;
  if (fragment.layout().id != FragmentId(0)) {
    // The steps behind a contribution to another fragment are those of fragment 0's plan.
    if (const uint32_t steps = core_.members.assignments().steps(member.name); steps > 0)
      plan.inner_steps = steps;
    return;
  }
  const WorkAssignments::Assigned given = core_.members.assignments().Assign(
      member, version, fragment.config().run, core_.members.membership(), now);
  plan.inner_steps = given.steps;
  if (!given.go_to) return;
  plan.data = DataPart{.partition = given.go_to->partition,
                       .partitions = core_.configs.run().data.partitions,
                       .samples_consumed = given.go_to->position};
}

void Pulls::CountPull(const WorkerName& worker, uint64_t bytes) {
  if (worker.empty()) return;  // an observer's: export, generate, a look
  MutexLock lock(&core_.mutex);
  core_.statistics.CountPull(bytes);
  if (core_.members.membership().Find(worker) != nullptr) core_.members.account(worker).pull_bytes += bytes;
}

}  // namespace atl
