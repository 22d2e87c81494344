#ifndef ATOLL_SERVER_RUN_STATUS_VIEWS_H_
#define ATOLL_SERVER_RUN_STATUS_VIEWS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "server/run/rounds.h"
#include "server/run/run_core.h"
#include "server/run/run_faults.h"
#include "server/run/run_waits.h"

namespace atl {

/// What the run shows of itself. Thread-safe.
class StatusViews {
 public:
  struct Numbers {
    uint32_t active_trainers = 0;
    uint32_t live_others = 0;
    uint32_t lost = 0;
    RunState state = RunState::kStarting;
    uint64_t committed_tokens = 0;
    uint64_t total_tokens = 0;
    std::string storage_error;                  // empty: the data directory can be written
    std::vector<FragmentStatusView> fragments;  // id, version, stored
  };
  struct Parts {
    const RunCore& core;
    const RunFaults& faults;
    const Rounds& rounds;
    const RunWaits& waits;
  };
  /// The parts outlive it.
  explicit StatusViews(const Parts& parts)
      : core_(parts.core), faults_(parts.faults), rounds_(parts.rounds), waits_(parts.waits) {}

  RunState state() const;
  Numbers numbers() const;
  /// All but uptime, the published hashes and the data directory.
  StatusView Status(uint32_t history, MonoTime now) const;
  std::vector<WorkerView> Workers(bool all, MonoTime now) const;

  /// Under the lock.
  RunState State() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(core_.mutex);

 private:
  /// A write failed after the last version was published, and still fails.
  bool StandsStillForStorage() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(core_.mutex);
  FragmentStatusView Fragment(const FragmentRound& fragment, MonoTime now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(core_.mutex);

  const RunCore& core_;
  const RunFaults& faults_;
  const Rounds& rounds_;
  const RunWaits& waits_;
};

}  // namespace atl

#endif  // ATOLL_SERVER_RUN_STATUS_VIEWS_H_
