#ifndef ATOLL_SERVER_RUN_PULLS_H_
#define ATOLL_SERVER_RUN_PULLS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "server/run/member_calls.h"
#include "server/run/run_core.h"

namespace atl {

/// Pulls: who may, and the plan of the round that comes with the parameters. Thread-safe.
class Pulls {
 public:
  /// Both outlive it.
  Pulls(RunCore& core, MemberCalls& member_calls) : core_(core), member_calls_(member_calls) {}

  absl::Status CheckPull(const MemberRef& caller, FragmentId fragment, MonoTime now, Effects& effects);
  /// The worker asks for a version after `after`, which is above the head: the data directory is an older
  /// copy of itself. An event says so, some of each worker.
  void NoteLostVersions(const WorkerName& worker, FragmentId fragment, Version after, Version head,
                        MonoTime now, Effects& effects);
  /// The worker gets this version: it begins to pull it.
  RoundPlan Deliver(const WorkerName& worker, FragmentId fragment, Version version, uint64_t committed_tokens,
                    MonoTime now);
  void CountPull(const WorkerName& worker, uint64_t bytes);

 private:
  uint32_t PlannedWorkers(const FragmentRound& fragment, MonoTime now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(core_.mutex);
  void FillPlan(const Member& member, const FragmentRound& fragment, Version version, MonoTime now,
                RoundPlan& plan) ABSL_EXCLUSIVE_LOCKS_REQUIRED(core_.mutex);

  /// Whether the worker is to evaluate this version.
  bool AssignEvaluation(const Member& member, Version version, bool last)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(core_.mutex);

  RunCore& core_;
  MemberCalls& member_calls_;
};

}  // namespace atl

#endif  // ATOLL_SERVER_RUN_PULLS_H_
