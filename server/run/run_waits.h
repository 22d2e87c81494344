#ifndef ATOLL_SERVER_RUN_RUN_WAITS_H_
#define ATOLL_SERVER_RUN_RUN_WAITS_H_

#include <string>
#include <vector>

#include "server/run/evaluations.h"
#include "server/run/run_core.h"
#include "server/run/run_faults.h"
#include "server/run/run_progress.h"

namespace atl {

/// What the coordinator waits for right now: for what, from whom, until when. Thread-safe.
class RunWaits {
 public:
  struct Parts {
    const RunCore& core;
    const RunFaults& faults;
    const RunProgress& progress;
    const Evaluations& evaluations;
  };
  /// The parts outlive it.
  explicit RunWaits(const Parts& parts)
      : core_(parts.core),
        faults_(parts.faults),
        progress_(parts.progress),
        evaluations_(parts.evaluations) {}

  /// In short, for who waits for the fragment's next version.
  std::string WaitingFor(FragmentId fragment) const;

  // Under the lock.
  std::vector<WaitView> Waits(MonoTime now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(core_.mutex);
  std::string StateReason() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(core_.mutex);

 private:
  const RunCore& core_;
  const RunFaults& faults_;
  const RunProgress& progress_;
  const Evaluations& evaluations_;
};

}  // namespace atl

#endif  // ATOLL_SERVER_RUN_RUN_WAITS_H_
