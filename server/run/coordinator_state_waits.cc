#include <algorithm>

#include "absl/strings/str_format.h"
#include "common/human.h"
#include "server/run/coordinator_state.h"

// What the coordinator waits for right now: for what, from whom, until when.

namespace atl {
namespace {

double Until(MonoTime end, MonoTime now) {
  // 0 says that there is no limit: one that is just being passed is a moment away.
  return std::max(1e-3, ToSeconds(end - now));
}

WaitView RoundWait(const FragmentRound& fragment, MonoTime now) {
  const uint32_t id = fragment.layout().id.value();
  WaitView wait{.what = "", .from = {}, .since_s = ToSeconds(now - fragment.decided_since)};
  if (fragment.closing() && fragment.accepting() > 0) {
    wait.what = absl::StrFormat(
        "fragment %d: the round is closed; %s just being written to disk", id,
        Counted(fragment.accepting(), "contribution") +
            (fragment.accepting() == 1 ? " that belongs to it is" : " that belong to it are"));
  } else if (fragment.closing()) {
    wait.what = absl::StrFormat("fragment %d: version %d is being merged and committed", id,
                                fragment.head().value() + 1);
  } else {
    wait.what = absl::StrFormat("fragment %d: %s", id, fragment.decision.reason);
    if (!fragment.awaits_storage) {
      wait.from = fragment.decision.waiting_for;
      if (fragment.decision.next_check) wait.ends_in_s = Until(*fragment.decision.next_check, now);
    }
  }
  return wait;
}

}  // namespace

bool CoordinatorState::AwaitsEvaluator() const {
  if (fragments_.empty() || config_->run.evaluated_by != EvaluatedBy::kEvaluator) return false;
  if (config_->run.evaluation_every == 0 || !members_.Live(WorkerRole::kEvaluator).empty()) return false;
  return !Finished() || !evaluation_assignment_.HasReport(fragments_.front().head());
}

std::vector<WaitView> CoordinatorState::Waits(MonoTime now) const {
  std::vector<WaitView> waits;
  if (fragments_.empty()) {
    WaitView& seed = waits.emplace_back(WaitView{.what = SeedReason(), .from = {}});
    if (!grant_.holder().empty()) seed.from.push_back(grant_.holder());
  }
  for (const FragmentRound& fragment : fragments_) {
    if (!fragment.finished()) waits.push_back(RoundWait(fragment, now));
  }
  for (const auto& [where, failure] : storage_errors_) {
    waits.push_back({.what = absl::StrFormat("the disk (%s): %s", where, failure.error),
                     .from = {},
                     .since_s = ToSeconds(now - failure.since)});
  }
  if (!fault_.empty()) waits.push_back({.what = "an operator: " + fault_, .from = {}});
  if (Finished() && !end_announced_) {
    WaitView& last = waits.emplace_back(WaitView{.what = "the evaluation of the last version", .from = {}});
    const WorkerName holder = evaluation_assignment_.Holder(fragments_.front().head());
    if (!holder.empty()) last.from.push_back(holder);
    last.ends_in_s = Until(*finished_at_ + options_.final_evaluation_wait, now);
    last.since_s = ToSeconds(now - *finished_at_);
  }
  if (AwaitsEvaluator()) {
    waits.push_back({.what =
                         "an evaluator: evaluation.by is 'evaluator' and none has joined, so no version is "
                         "evaluated; start one with atoll-worker --role evaluator, or set evaluation.by "
                         "to worker",
                     .from = {}});
  }
  WaitView drains{.what = "draining workers: they finish the round and leave", .from = {}};
  for (const Member* member : members_.membership().Live()) {
    if (member->state == MemberState::kDraining) drains.from.push_back(member->name);
  }
  if (!drains.from.empty()) waits.push_back(std::move(drains));
  return waits;
}

}  // namespace atl
