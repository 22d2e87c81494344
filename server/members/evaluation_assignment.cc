#include "server/members/evaluation_assignment.h"

#include <algorithm>

namespace atl {

EvaluationPolicy EvaluationPolicyOf(const RunOptions& run) {
  return {.by = run.evaluated_by,
          .every = run.evaluation_every,
          .tasks_every = run.evaluation_tasks.empty() ? 0 : run.evaluation_tasks_every};
}

bool EvaluationAssignment::Due(Version version, bool last) const {
  if (version == Version(0) || last) return true;
  return policy_.every > 0 && version.value() % policy_.every == 0;
}

bool EvaluationAssignment::TasksDue(Version version, bool last) const {
  if (policy_.tasks_every == 0) return false;
  if (version == Version(0) || last) return true;
  return policy_.every > 0 && version.value() % (uint64_t{policy_.every} * policy_.tasks_every) == 0;
}

bool EvaluationAssignment::Assign(const WorkerName& worker, WorkerRole role, Version version, bool last,
                                  std::span<const WorkerName> live) {
  if (!Wanted(role, version, last)) return false;
  if (role == WorkerRole::kEvaluator) {
    Ask(worker, version);
    return true;
  }
  if (live.empty()) return false;
  WorkerName& holder = holders_[version];
  if (std::ranges::find(live, holder) == live.end()) holder = live.front();
  const bool chosen = holder == worker;
  if (chosen) Ask(worker, version);
  // Assignments of versions long gone are of no use to anybody.
  while (holders_.size() > kKept) holders_.erase(holders_.begin());
  return chosen;
}

void EvaluationAssignment::Ask(const WorkerName& worker, Version version) {
  std::set<Version>& versions = asked_[worker];
  versions.insert(version);
  while (versions.size() > kKept) versions.erase(versions.begin());
}

void EvaluationAssignment::Inherit(Version head, bool last, const std::set<WorkerName>& workers) {
  size_t due = 0;
  for (uint64_t version = head.value() + 1; version-- > 0 && due < kKept;) {
    if (!Due(Version(version), last && version == head.value())) continue;
    ++due;
    if (HasReport(Version(version))) continue;
    for (const WorkerName& worker : workers) Ask(worker, Version(version));
  }
}

EvaluationWorth EvaluationAssignment::Weigh(const WorkerName& worker, Version version) const {
  if (HasReport(version)) return EvaluationWorth::kKnown;
  const auto asked = asked_.find(worker);
  const bool expected = asked != asked_.end() && asked->second.contains(version);
  return expected ? EvaluationWorth::kTaken : EvaluationWorth::kUnasked;
}

bool EvaluationAssignment::NoteIgnored(MonoTime now) {
  ++ignored_;
  return events_.Allow(now);
}

WorkerName EvaluationAssignment::Holder(Version version) const {
  const auto it = holders_.find(version);
  return it == holders_.end() ? WorkerName() : it->second;
}

}  // namespace atl
