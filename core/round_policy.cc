#include "core/round_policy.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/human.h"

namespace atl {
namespace {

using Action = RoundDecision::Action;

// After this many deadlines a held round is critical.
constexpr int kCriticalDeadlines = 3;
// Names in a reason; the rest is counted.
constexpr size_t kNamesInReason = 8;

std::string Names(const std::vector<WorkerName>& names) {
  const size_t shown = std::min(names.size(), kNamesInReason);
  std::string text = absl::StrJoin(names.begin(), names.begin() + static_cast<ptrdiff_t>(shown), ", ");
  if (shown < names.size()) text += absl::StrFormat(" and %d more", names.size() - shown);
  return text;
}

std::string LateOnes(const RoundView& view) {
  return view.late == 0 ? std::string() : absl::StrFormat(" and %d late", view.late);
}

/// Live workers that the counts leave out.
std::string NextRound(const RoundView& view) {
  if (view.next_round.empty()) return "";
  return absl::StrFormat("; %s %s from the next round", Names(view.next_round),
                         view.next_round.size() == 1 ? "counts" : "count");
}

RoundDecision Gather(const RoundView& view, const RoundOptions& options) {
  RoundDecision decision{.action = Action::kWait,
                         .health = view.base == Version(0) ? RunHealth::kStarting : RunHealth::kTraining,
                         .next_check = view.gather_until};
  decision.reason = absl::StrFormat(
      "%s: %d of %d (round.start_workers) are here",
      view.base == Version(0) ? "waiting for workers to join"
                              : "all workers had left; waiting for others to join, at most round.lease_s",
      view.gathered, options.start_workers);
  return decision;
}

RoundDecision NobodyThere(const RoundView& view) {
  if (view.first_join_due) {
    return {.action = Action::kWait,
            .health = RunHealth::kStarting,
            .reason = view.base == Version(0)
                          ? "no worker has joined yet"
                          : "no worker has joined since the coordinator started or the run was extended",
            .next_check = view.first_join_due};
  }
  return {.action = Action::kWait,
          .health = view.base == Version(0) ? RunHealth::kStarting : RunHealth::kDegraded,
          .reason = "no worker is live; waiting for workers to join"};
}

/// The earlier of the two, if there are any.
std::optional<MonoTime> Earlier(std::optional<MonoTime> a, std::optional<MonoTime> b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

RoundDecision Close(std::string reason) {
  return {.action = Action::kClose, .health = RunHealth::kTraining, .reason = std::move(reason)};
}

RoundDecision Hold(MonoTime now, MonoTime deadline, const RoundView& view, const RoundOptions& options) {
  const MonoTime critical_at = view.started_at + kCriticalDeadlines * options.deadline;
  RoundDecision decision{.action = Action::kHold,
                         .health = now >= critical_at ? RunHealth::kCritical : RunHealth::kDegraded,
                         .waits_for_expected = !view.expected.empty()};
  if (now < critical_at) decision.next_check = critical_at;
  decision.next_check = Earlier(decision.next_check, view.expected_change_at);
  decision.reason = absl::StrFormat(
      "held open %.1f s past the deadline: %s%s, at least %d are needed%s%s", ToSeconds(now - deadline),
      Counted(view.arrived.size(), "contribution"), LateOnes(view), options.minimum,
      view.expected.empty() ? "; waiting for workers to join" : "; waiting for " + Names(view.expected),
      NextRound(view));
  return decision;
}

RoundDecision Wait(const RoundView& view, MonoTime until, std::string_view for_what) {
  RoundDecision decision{.action = Action::kWait,
                         .health = RunHealth::kTraining,
                         .waits_for_expected = !view.expected.empty(),
                         .next_check = Earlier(until, view.expected_change_at)};
  decision.reason =
      absl::StrFormat("%d of %s%s", view.arrived.size(),
                      Counted(view.arrived.size() + view.expected.size(), "contribution"), LateOnes(view));
  if (!for_what.empty()) decision.reason += ", " + std::string(for_what);
  if (!view.expected.empty()) decision.reason += "; waiting for " + Names(view.expected);
  decision.reason += NextRound(view);
  return decision;
}

/// What the minimum says of a round that waits. Nothing, while those that are expected can reach it: every
/// round begins without a contribution.
std::string MinimumText(const RoundView& view, const RoundOptions& options) {
  const size_t minimum = std::max<size_t>(options.minimum, 1);
  if (view.arrived.size() >= minimum) return "enough to close at the deadline";
  if (view.arrived.size() + view.expected.size() >= minimum) return "";
  return absl::StrFormat("at least %d are needed", minimum);
}

RoundDecision DecideAsync(MonoTime now, const RoundView& view, const RoundOptions& options) {
  const size_t there = view.arrived.size() + view.late;
  if (there >= std::max<size_t>(options.minimum, 1)) {
    std::string why = absl::StrFormat("without barriers: %d arrived", there);
    if (view.overdue > 0) {
      why += absl::StrFormat(", %d of them later than %s", view.overdue,
                             view.live_trainers == 1
                                 ? "1 worker makes it"
                                 : absl::StrFormat("%d workers make it", view.live_trainers));
    }
    return Close(std::move(why));
  }
  if (view.live_trainers == 0) return NobodyThere(view);
  const MonoTime deadline = view.started_at + options.deadline;
  if (now >= deadline) return Hold(now, deadline, view, options);
  return Wait(view, deadline, "the next makes a version");
}

}  // namespace

uint64_t ExpectedLateness(RoundMode mode, uint64_t live_trainers) {
  return mode == RoundMode::kAsync && live_trainers > 1 ? 2 * (live_trainers - 1) : 0;
}

size_t QuorumCount(size_t total, const RoundOptions& options) {
  // The tolerance keeps 0.6 * 5 = 3.0000000000000004 from asking for four.
  const auto quorum = static_cast<size_t>(std::ceil(options.quorum * static_cast<double>(total) - 1e-9));
  return std::max({quorum, static_cast<size_t>(options.minimum), size_t{1}});
}

std::optional<MonoTime> QuorumReachedAt(const RoundView& view, const RoundOptions& options) {
  const size_t quorum = QuorumCount(view.arrived.size() + view.expected.size(), options);
  if (view.arrived.size() < quorum) return std::nullopt;
  return std::max(view.arrived[quorum - 1].at, view.started_at);
}

RoundDecision Decide(MonoTime now, const RoundView& view, const RoundOptions& options) {
  if (options.mode == RoundMode::kAsync) return DecideAsync(now, view, options);
  const size_t arrived = view.arrived.size();
  if (view.live_trainers == 0 && arrived == 0) return NobodyThere(view);
  if (view.gathering) return Gather(view, options);

  const bool enough = arrived >= std::max<size_t>(options.minimum, 1);
  if (enough && view.expected.empty()) {
    const std::string all = arrived == 1 ? "the only expected contribution arrived"
                                         : absl::StrFormat("all %d expected contributions arrived", arrived);
    return Close(all + LateOnes(view));
  }
  const MonoTime deadline = view.started_at + options.deadline;
  if (const std::optional<MonoTime> quorum_at = QuorumReachedAt(view, options)) {
    const MonoTime grace_over = *quorum_at + options.grace;
    if (now >= grace_over) {
      return Close(absl::StrFormat("quorum: %d of %d arrived%s, and the grace of %.1f s is over; without %s",
                                   arrived, arrived + view.expected.size(), LateOnes(view),
                                   ToSeconds(options.grace), Names(view.expected)));
    }
    if (now < deadline) return Wait(view, std::min(grace_over, deadline), "quorum reached, grace running");
  }
  if (now < deadline) return Wait(view, deadline, MinimumText(view, options));
  if (enough) {
    return Close(absl::StrFormat("deadline: %d of %d arrived within %.1f s%s; without %s", arrived,
                                 arrived + view.expected.size(), ToSeconds(options.deadline), LateOnes(view),
                                 Names(view.expected)));
  }
  return Hold(now, deadline, view, options);
}

}  // namespace atl
