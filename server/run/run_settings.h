#ifndef ATOLL_SERVER_RUN_RUN_SETTINGS_H_
#define ATOLL_SERVER_RUN_RUN_SETTINGS_H_

#include <cstdint>
#include <vector>

#include "core/fragment_plan.h"
#include "server/run/run_core.h"

namespace atl {

/// The configuration in force, and the bounds that follow from it and from the configurations of the open
/// rounds. Thread-safe.
class RunSettings {
 public:
  /// `core` outlives it.
  explicit RunSettings(RunCore& core) : core_(core) {}

  /// The newest configuration.
  ConfigPtr config() const;
  /// In force from the next round of each fragment; what belongs to no round (limits, evaluations) at once.
  void Configure(ConfigPtr config, Effects& effects);

  /// Bytes of the largest payload that a push of `elements` to the fragment's open round may have.
  uint64_t LargestPush(FragmentId fragment, uint64_t elements) const;
  /// The largest round.staleness_limit of the newest configuration and of all open rounds.
  uint32_t StalenessLimit() const;
  /// Bytes: limits.contribution_budget_mib, and not less than one contribution to an open round by any of its
  /// codecs. Set together with a smaller codec it would hold none of the round that is open, which waits.
  uint64_t ContributionBudget() const;
  /// The run's model; not known while the run is not seeded.
  RunModel Model() const;
  /// Of all fragments, in order; empty while the run is not seeded.
  std::vector<FragmentLayout> Layouts() const;

 private:
  RunCore& core_;
};

}  // namespace atl

#endif  // ATOLL_SERVER_RUN_RUN_SETTINGS_H_
