#ifndef ATOLL_SERVER_RUN_RUN_CONTROL_H_
#define ATOLL_SERVER_RUN_RUN_CONTROL_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/round_policy.h"
#include "server/run/run_core.h"

namespace atl {

/// What operators do to the run: pause, resume, stop, close a round. Thread-safe.
class RunControl {
 public:
  /// `core` outlives it.
  explicit RunControl(RunCore& core) : core_(core) {}

  ControlEntry control() const;
  /// FailedPrecondition, saying the state, when the action makes no sense now.
  absl::Status CheckControl(RunMode mode) const;
  /// FailedPrecondition when the run is stopped or finished.
  absl::Status CheckOpen() const;
  /// FailedPrecondition when the run is stopped.
  absl::Status CheckNotStopped() const;
  /// Applies a recorded entry: rounds wait, continue with new deadlines, or close permanently.
  void SetControl(const ControlEntry& control, MonoTime now, Effects& effects);
  /// So many workers are wanted of the launcher: recorded, for the next start.
  void SetWorkers(const ControlEntry& control);
  /// Closes the open round of every fragment that has contributions; how many those are. FailedPrecondition
  /// when nothing arrived, or no round closes now.
  absl::StatusOr<uint32_t> CloseRounds(const std::string& why, Effects& effects);

  /// Under the lock. What an operator decided of this round; nullopt: nothing.
  std::optional<RoundDecision> Decision(const FragmentRound& fragment) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(core_.mutex);

 private:
  RunCore& core_;
};

}  // namespace atl

#endif  // ATOLL_SERVER_RUN_RUN_CONTROL_H_
