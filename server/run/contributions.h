#ifndef ATOLL_SERVER_RUN_CONTRIBUTIONS_H_
#define ATOLL_SERVER_RUN_CONTRIBUTIONS_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/mutex.h"
#include "core/contribution.h"
#include "core/fragment_plan.h"
#include "core/offences.h"
#include "server/run/member_calls.h"
#include "server/run/run_core.h"

namespace atl {

/// Contributions: what may be uploaded, what counts. Thread-safe.
class Contributions {
 public:
  struct Admission {
    Contribution contribution;      // what it claims is capped; norm not known yet
    uint64_t claimed_position = 0;  // in the data, as its worker has it
    bool duplicate = false;
    bool capped = false;
    uint64_t elements = 0;
    /// Null: the gaps between tensors are not checked. Workers of 0.1.0 add the noise of privacy to them,
    /// too.
    std::shared_ptr<const FragmentLayout> zero_gaps = nullptr;
  };

  /// Both outlive it.
  Contributions(RunCore& core, MemberCalls& member_calls) : core_(core), member_calls_(member_calls) {}

  absl::StatusOr<Admission> AdmitPush(const MemberRef& caller, const PushHeader& header, MonoTime now,
                                      Effects& effects);
  /// Before the contribution becomes durable; every OK is followed by one EndAccept.
  absl::Status BeginAccept(const MemberRef& caller, const Admission& admission, MonoTime now);
  PushResult EndAccept(const Admission& admission, bool durable, MonoTime now, Effects& effects);
  PushResult Arrivals(FragmentId fragment, MonoTime now) const;
  /// All but the received bytes.
  absl::StatusOr<PushStatusReply> PushStatus(const MemberRef& caller, const PushKey& key, MonoTime now,
                                             Effects& effects);

  void CountPush(const WorkerName& worker, uint64_t bytes);
  /// Counts a refused push. Whether it may be announced: a worker that goes on pushing what is refused must
  /// not fill the event log.
  bool CountRejected(const WorkerName& worker, MonoTime now);
  /// Its push to this fragment was refused for what it contains.
  void RejectedFor(Offence offence, const WorkerName& worker, const PushKey& push);
  /// ALREADY_PUSHED when its worker pushed the same bytes for another base that is remembered: no training
  /// gives the same pseudo-gradient twice, unless that is zero. Only where contributions are measured.
  absl::Status CheckReplay(const Contribution& contribution) const;

  // For a restore.
  /// No push is admitted and no acceptance begins until Release: Unavailable, with a retry delay.
  void HoldAcceptances();
  void ReleaseAcceptances();
  /// Unavailable when those in flight do not end within `timeout`.
  absl::Status AwaitAcceptances(Duration timeout);

 private:
  void Missed(FragmentRound& fragment, const Contribution& contribution, uint64_t claimed_position,
              const absl::Status& rejection, MonoTime now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(core_.mutex);
  PushResult ArrivalsLocked(const FragmentRound& fragment, MonoTime now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(core_.mutex);

  RunCore& core_;
  MemberCalls& member_calls_;
  CondVar acceptance_ended_;
  bool acceptances_held_ ABSL_GUARDED_BY(core_.mutex) = false;
  EventThrottle rejected_strangers_ ABSL_GUARDED_BY(core_.mutex);  // under names that are no members'
};

}  // namespace atl

#endif  // ATOLL_SERVER_RUN_CONTRIBUTIONS_H_
