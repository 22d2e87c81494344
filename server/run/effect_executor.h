#ifndef ATOLL_SERVER_RUN_EFFECT_EXECUTOR_H_
#define ATOLL_SERVER_RUN_EFFECT_EXECUTOR_H_

#include <functional>
#include <set>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/log.h"
#include "common/mutex.h"
#include "server/events/event_log.h"
#include "server/events/observer.h"
#include "server/members/member_records.h"
#include "server/run/coordinator_state.h"
#include "server/run/effects.h"

namespace atl {

/// Carries out what a change of the coordinator's state asks of the outside. Thread-safe; never called under
/// the state's lock.
class EffectExecutor {
 public:
  /// Everything outlives it.
  EffectExecutor(RunStore* store, CoordinatorState* state, EventLog* events, CoordinatorObserver* observer,
                 Logger log)
      : store_(store), state_(state), events_(events), observer_(observer), log_(std::move(log)) {}

  /// Called when a round may be ready to close. Set once, before the first Execute.
  void WakeRoundsBy(std::function<void()> wake) { wake_ = std::move(wake); }

  /// Called with the name of each member that was forgotten. Set once, before the first Execute.
  void OnForgotten(std::function<void(const WorkerName&)> forget) { forget_ = std::move(forget); }

  /// Stores the records that `plan` gives, all of them or none, then calls `change`, which makes it so in the
  /// book, and sends its effects. After an error of `plan` or of the store (a refusal) nothing has changed.
  using Plan = std::function<absl::StatusOr<MemberRecords>()>;
  using Change = std::function<absl::Status(const std::set<WorkerName>& recorded, Effects& effects)>;
  absl::Status RecordThen(const Plan& plan, const Change& change);

  /// Stores, announces, wakes, in this order. The status is that of storing and deleting members: a Join must
  /// not be answered before its incarnation is on disk. Everything else is done whatever fails.
  absl::Status Execute(const Effects& effects);

 private:
  absl::Status StoreMember(const WorkerName& name);
  absl::Status ForgetMembers(const Effects& effects, const std::set<WorkerName>& recorded);
  /// All but storing and deleting the members that are recorded already.
  absl::Status ExecuteRest(const Effects& effects, const std::set<WorkerName>& recorded);
  void Announce(const EventView& event);

  RunStore* const store_;
  CoordinatorState* const state_;
  EventLog* const events_;
  CoordinatorObserver* const observer_;
  const Logger log_;
  std::function<void()> wake_;
  std::function<void(const WorkerName&)> forget_;
  // Orders the writes of members, so that the newest record is the one that stays: it is read from the
  // coordinator's state and written under this lock, which nobody takes for anything else.
  Mutex members_mutex_;
};

}  // namespace atl

#endif  // ATOLL_SERVER_RUN_EFFECT_EXECUTOR_H_
