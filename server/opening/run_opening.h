#ifndef ATOLL_SERVER_OPENING_RUN_OPENING_H_
#define ATOLL_SERVER_OPENING_RUN_OPENING_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "server/create_coordinator.h"
#include "server/rounds/fragment_state.h"
#include "server/rounds/merge_engine.h"
#include "server/run/config_snapshot.h"
#include "storage/run_store.h"

namespace atl {

/// Author of a configuration that came with a start of the coordinator.
inline constexpr std::string_view kStartAuthor = "start";

/// A run as it was found on disk, or as it was just begun.
struct OpenedRun {
  Recovery recovery;
  ConfigPtr config;                      // in force
  std::vector<FragmentLayout> layouts;   // empty: not seeded
  std::vector<FragmentState> fragments;  // at their heads
  std::vector<ConfigPtr>
      earlier_configs;                   // from the oldest that an open round has, up to `config`; ascending
  std::vector<ConfigPtr> round_configs;  // that the open rounds were opened with, by fragment
  std::string config_changed;            // by the file of this start, and what was made of it; else empty
};

/// Begins a run in an empty store; else reads the newest stored versions and replays the rounds after them.
/// See CreateCoordinator for the errors.
absl::StatusOr<OpenedRun> OpenRun(const CoordinatorOptions& options, const CoordinatorDeps& deps,
                                  MergeEngine& engine);

/// FailedPrecondition, naming the field, when a run that was begun with `recorded` cannot go on with `now`.
absl::Status CheckSettled(const RunOptions& recorded, const RunOptions& now);

}  // namespace atl

#endif  // ATOLL_SERVER_OPENING_RUN_OPENING_H_
