#ifndef ATOLL_CORE_ROUND_POLICY_H_
#define ATOLL_CORE_ROUND_POLICY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/clock.h"
#include "common/ids.h"
#include "core/run_options.h"

namespace atl {

/// starting: gathering the first workers, of the run or, for one lease, of a round that began without any
/// (after a start of the coordinator, after an extension). training: rounds close as they should. degraded: a
/// round is held open past its deadline, or nobody is there. critical: held for more than three deadlines.
/// finished: the token budget is used up (set by the run, never by the policy).
enum class RunHealth : uint8_t { kStarting = 1, kTraining = 2, kDegraded = 3, kCritical = 4, kFinished = 5 };

struct ArrivalView {
  WorkerName worker = {};
  MonoTime at = {};
};

/// One fragment's open round as the policy sees it. Made by Round::View.
struct RoundView {
  Version base = {};
  // From when the deadline counts: the base's publication, or the end of the gathering.
  MonoTime started_at = {};
  bool gathering = false;
  std::optional<MonoTime> gather_until = std::nullopt;  // set once the first worker is there
  uint32_t gathered = 0;                                // workers there so far
  std::vector<WorkerName> expected = {};                // live, waited for, not yet arrived; in order of name
  std::vector<ArrivalView> arrived = {};                // in order of arrival, late folds left out
  uint32_t late = 0;                                    // late folds
  uint32_t overdue = 0;                                 // of them, later than ExpectedLateness
  uint32_t live_trainers = 0;
  /// Until when nobody needs to be there: a lease after the start of a coordinator or the extension of a run.
  /// nullopt later, and once a worker was there.
  std::optional<MonoTime> first_join_due = std::nullopt;
  /// Live, not arrived and not waited for in this round: they joined after it was opened, did not begin it in
  /// time, or their contribution was refused. In order of name.
  std::vector<WorkerName> next_round = {};
  /// When `expected` changes by time alone: those who did not begin to pull are then given up.
  std::optional<MonoTime> expected_change_at = std::nullopt;
};

struct RoundDecision {
  /// wait: nothing to do before next_check or the next event. close: merge what arrived. hold: the deadline
  /// has passed below the minimum; the round stays open.
  enum class Action : uint8_t { kWait = 1, kClose = 2, kHold = 3 };
  Action action = Action::kWait;
  RunHealth health = RunHealth::kTraining;
  /// For people: what is waited for, or why it closes.
  std::string reason = {};
  /// It waits for those that the view expects. Not when it waits for "someone", or for nobody.
  bool waits_for_expected = false;
  /// Until when, if nothing else happens; without it only an event changes anything.
  std::optional<MonoTime> next_check = std::nullopt;
};

/// When does a round close? Pure: the same view gives the same decision. In this order:
///   1. nobody is live and nothing arrived, or the round is still gathering: wait
///   2. everyone expected arrived, and at least the minimum: close
///   3. the quorum (ceil(quorum * (expected + arrived)), at least the minimum) is there and the grace that
///   began with its
///      last arrival ran out: close
///   4. the deadline passed with at least the minimum: close
///   5. the deadline passed: hold; degraded, after three deadlines critical
///   6. else wait
/// Late folds count for nothing here. Without barriers (RoundMode::kAsync) there is one rule: as soon as the
/// minimum is there, late ones counted, close; past the deadline hold, else wait.
RoundDecision Decide(MonoTime now, const RoundView& view, const RoundOptions& options);

/// So many versions may a contribution's base be behind the head and not count as late. With barriers 0.
/// Without them every contribution makes a version, so that each of the others moves the head once while a
/// worker trains, or twice when its turn comes round early.
uint64_t ExpectedLateness(RoundMode mode, uint64_t live_trainers);

/// Contributions that make a quorum when so many could come.
size_t QuorumCount(size_t total, const RoundOptions& options);

/// When the contribution came that made the quorum (or the round's start, if that was later); nullopt: it is
/// not there.
std::optional<MonoTime> QuorumReachedAt(const RoundView& view, const RoundOptions& options);

}  // namespace atl

#endif  // ATOLL_CORE_ROUND_POLICY_H_
