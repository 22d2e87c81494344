#ifndef ATOLL_SERVER_RUN_COORDINATOR_STATE_H_
#define ATOLL_SERVER_RUN_COORDINATOR_STATE_H_

#include <vector>

#include "common/clock.h"
#include "server/run/contributions.h"
#include "server/run/evaluations.h"
#include "server/run/member_actions.h"
#include "server/run/member_calls.h"
#include "server/run/pulls.h"
#include "server/run/rounds.h"
#include "server/run/run_control.h"
#include "server/run/run_core.h"
#include "server/run/run_faults.h"
#include "server/run/run_progress.h"
#include "server/run/run_settings.h"
#include "server/run/run_waits.h"
#include "server/run/seeding.h"
#include "server/run/status_views.h"
#include "storage/run_store.h"

namespace atl {

/// Everything small that the coordinator knows of its run: the parts that own it, over one RunCore, whose
/// lock they share. It decides nothing that core decides, touches neither disk nor tensors, and calls nobody:
/// what a change asks of the outside comes back as Effects. Thread-safe; `now` is never before an earlier
/// call's by more than the calls' own race.
class CoordinatorState {
 public:
  explicit CoordinatorState(const CoordinatorStateOptions& options);

  /// Once, before anything else: what was on disk. `layouts`, and the configurations that the open rounds
  /// were opened with, are empty when the run is not seeded. Returns the fragments that will have no further
  /// version.
  std::vector<FragmentId> Restore(const Recovery& recovery, const std::vector<FragmentLayout>& layouts,
                                  const std::vector<ConfigPtr>& round_configs, MonoTime now);
  /// The run goes on from these contents, under their epoch; `sources`: the versions that they were, by
  /// fragment. Returns the fragments that will have no further version.
  std::vector<FragmentId> Restored(const EpochStart& start, const std::vector<Version>& sources, MonoTime now,
                                   Effects& effects);
  /// Ends leases, passes the seed grant on, announces the end of the run.
  void Tick(MonoTime now, Effects& effects);

  RunSettings& settings() { return settings_; }
  RunControl& control() { return control_; }
  RunProgress& progress() { return progress_; }
  RunFaults& faults() { return faults_; }
  RunWaits& waits() { return waits_; }
  StatusViews& views() { return views_; }
  MemberCalls& members() { return member_calls_; }
  MemberActions& member_actions() { return member_actions_; }
  Seeding& seeding() { return seeding_; }
  Contributions& contributions() { return contributions_; }
  Pulls& pulls() { return pulls_; }
  Rounds& rounds() { return rounds_; }

 private:
  void RestoreRounds(const Recovery& recovery, const std::vector<ConfigPtr>& round_configs, MonoTime now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(core_.mutex);

  RunCore core_;  // first: the parts use it
  RunSettings settings_{core_};
  RunControl control_{core_};
  RunFaults faults_{core_};
  Evaluations evaluations_{core_};
  RunProgress progress_{core_, evaluations_};
  MemberActions member_actions_{core_, progress_};
  Rounds rounds_{
      {.core = core_, .control = control_, .progress = progress_, .member_actions = member_actions_}};
  RunWaits waits_{{.core = core_, .faults = faults_, .progress = progress_, .evaluations = evaluations_}};
  StatusViews views_{{.core = core_, .faults = faults_, .rounds = rounds_, .waits = waits_}};
  MemberCalls member_calls_{
      {.core = core_, .evaluations = evaluations_, .progress = progress_, .views = views_}};
  Seeding seeding_{core_, member_calls_};
  Contributions contributions_{core_, member_calls_};
  Pulls pulls_{core_, member_calls_};
};

}  // namespace atl

#endif  // ATOLL_SERVER_RUN_COORDINATOR_STATE_H_
