#include "server/run/run_waits.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "common/human.h"

namespace atl {
namespace {

double Until(MonoTime end, MonoTime now) {
  // 0 means no limit, so a limit that is just being passed is a moment away.
  return std::max(1e-3, ToSeconds(end - now));
}

WaitView RoundWait(const FragmentRound& fragment, const Membership& membership, MonoTime now) {
  const uint32_t id = fragment.layout().id.value();
  WaitView wait{.what = "", .from = {}, .since_s = ToSeconds(now - fragment.verdict.since())};
  if (fragment.closing() && fragment.accepting() > 0) {
    wait.what = absl::StrFormat(
        "fragment %d: the round is closed; %s just being written to disk", id,
        Counted(fragment.accepting(), "contribution") +
            (fragment.accepting() == 1 ? " that belongs to it is" : " that belong to it are"));
  } else if (fragment.closing()) {
    wait.what = absl::StrFormat("fragment %d: version %d is being merged and committed", id,
                                fragment.head().value() + 1);
  } else {
    wait.what = absl::StrFormat("fragment %d: %s", id, fragment.verdict.decision().reason);
    if (!fragment.verdict.awaits_storage()) {
      const bool names = fragment.verdict.decision().waits_for_expected && fragment.round() != nullptr;
      if (names) wait.from = fragment.round()->View(now, membership).expected;
      if (fragment.verdict.decision().next_check)
        wait.ends_in_s = Until(*fragment.verdict.decision().next_check, now);
    }
  }
  return wait;
}

}  // namespace

std::string RunWaits::WaitingFor(FragmentId id) const {
  MutexLock lock(&core_.mutex);
  if (core_.control.mode != RunMode::kRunning) return core_.ControlText();
  if (id.value() >= core_.fragments.size()) return core_.SeedReason();
  const FragmentRound& fragment = core_.fragments[id.value()];
  if (!faults_.fault().empty()) return faults_.fault();
  if (!faults_.storage_errors().empty()) return faults_.StorageError();
  return fragment.closing() ? "the round is closed and being committed" : fragment.verdict.decision().reason;
}

std::string RunWaits::StateReason() const {
  if (core_.control.mode == RunMode::kStopped) return core_.ControlText();
  if (!faults_.fault().empty()) return faults_.fault();
  if (!faults_.storage_errors().empty()) return faults_.StorageError();
  if (core_.control.mode == RunMode::kPaused) return core_.ControlText();
  if (core_.fragments.empty()) return core_.SeedReason();
  if (core_.Finished()) {
    if (progress_.end_announced()) return "the token budget is spent";
    return "the token budget is spent; waiting for the evaluation of the last version";
  }
  const FragmentRound* worst = nullptr;
  for (const FragmentRound& fragment : core_.fragments) {
    if (fragment.finished()) continue;
    if (worst == nullptr || fragment.verdict.decision().health > worst->verdict.decision().health)
      worst = &fragment;
  }
  return worst->closing() ? "merging: " + worst->verdict.decision().reason : worst->verdict.decision().reason;
}

std::vector<WaitView> RunWaits::Waits(MonoTime now) const {
  std::vector<WaitView> waits;
  if (core_.fragments.empty()) {
    WaitView& seed = waits.emplace_back(WaitView{.what = core_.SeedReason(), .from = {}});
    if (!core_.grant.holder().empty()) seed.from.push_back(core_.grant.holder());
  }
  for (const FragmentRound& fragment : core_.fragments) {
    if (!fragment.finished()) waits.push_back(RoundWait(fragment, core_.members.membership(), now));
  }
  for (const auto& [where, failure] : faults_.storage_errors()) {
    waits.push_back({.what = absl::StrFormat("the disk (%s): %s", where, failure.error),
                     .from = {},
                     .since_s = ToSeconds(now - failure.since)});
  }
  if (!faults_.fault().empty()) waits.push_back({.what = "an operator: " + faults_.fault(), .from = {}});
  if (core_.Finished() && !progress_.end_announced()) {
    WaitView& last = waits.emplace_back(WaitView{.what = "the evaluation of the last version", .from = {}});
    const WorkerName holder = core_.evaluation_assignment.Holder(core_.fragments.front().head());
    if (!holder.empty()) last.from.push_back(holder);
    last.ends_in_s = Until(progress_.evaluation_due(), now);
    last.since_s = ToSeconds(now - progress_.finished_at());
  }
  if (evaluations_.Awaited()) {
    waits.push_back({.what = "an evaluator: evaluation.by is 'evaluator' and none is here, so no version is "
                             "evaluated; start one with atoll-worker --role evaluator, or set evaluation.by "
                             "to worker",
                     .from = {}});
  }
  WaitView drains{.what = "draining workers: they finish the round and leave", .from = {}};
  for (const Member* member : core_.members.membership().Live()) {
    if (member->state == MemberState::kDraining) drains.from.push_back(member->name);
  }
  if (!drains.from.empty()) waits.push_back(std::move(drains));
  return waits;
}

}  // namespace atl
