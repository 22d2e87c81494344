#ifndef ATOLL_CORE_PROTOCOL_RUN_STATE_H_
#define ATOLL_CORE_PROTOCOL_RUN_STATE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "common/clock.h"
#include "common/ids.h"

// What the coordinator tells a worker about the run. The fields mirror atoll/v1/types.proto, where they are
// described.

namespace atl {

/// Values of RunState in types.proto.
enum class RunState : uint8_t {
  kUnknown = 0,
  kStarting = 1,
  kTraining = 2,
  kDegraded = 3,
  kCritical = 4,
  kFinished = 5,
  kPaused = 6,
  kStopped = 7
};

/// The newest version of a fragment (FragmentInfo on the wire).
struct FragmentHead {
  FragmentId id = {};
  Version version = {};
  uint64_t elements = 0;      // float32 values of the flat vector, padding included
  std::string endpoint = {};  // empty: the address that answered
};

/// A worker's part of the shared data (DataAssignment on the wire).
struct DataPart {
  uint32_t partition = 0;
  uint32_t partitions = 0;
  uint64_t samples_consumed = 0;  // in committed contributions
  friend bool operator==(const DataPart&, const DataPart&) = default;
};

/// What a worker is to do with the version it pulled.
struct RoundPlan {
  uint32_t inner_steps = 0;
  uint32_t active_workers = 1;
  uint64_t committed_tokens = 0;
  uint64_t total_tokens = 0;
  bool evaluate = false;
  Duration deadline{};
  std::optional<DataPart> data = std::nullopt;  // where to train this round; none: where the worker is
  uint64_t config_version = 0;                  // in force in this round; 0: not said
  bool run_tasks = false;                       // with `evaluate`: those of evaluation.tasks too
};

}  // namespace atl

#endif  // ATOLL_CORE_PROTOCOL_RUN_STATE_H_
