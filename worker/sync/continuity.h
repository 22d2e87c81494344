#ifndef ATOLL_WORKER_SYNC_CONTINUITY_H_
#define ATOLL_WORKER_SYNC_CONTINUITY_H_

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "common/signature.h"
#include "worker/sync/context.h"
#include "worker/sync/contribution_packer.h"
#include "worker/sync/delivery.h"
#include "worker/sync/local_state.h"
#include "worker/sync/replica.h"
#include "worker/sync/rewarm.h"
#include "worker/sync/session.h"

namespace atoll {

struct FragmentBase;
class PeerAudit;

/// What makes a worker's next life go on where this one ends. The pointers may be null, but for `rewarm`.
struct Continuity {
  LocalState* disk = nullptr;       // null: nothing is kept
  const SigningKey* key = nullptr;  // null: no confirmations are sent
  PeerAudit* audit = nullptr;       // null: nobody compares with what others sign
  Rewarm* rewarm = nullptr;         // outlives the loop: it belongs to the inner optimizer
};

/// Contributions that outlive the process: on disk before their first byte is sent, settled there when it is
/// known what became of them. Different fragments may be kept and settled by different threads.
class PushKeeper {
 public:
  /// `disk` may be null: nothing is kept. It outlives this object.
  PushKeeper(LocalState* disk, const WorkerContext& context) : disk_(disk), context_(context) {}

  /// Settles what an earlier life pushed last, packers[i] being of layout[i], and goes on after its samples.
  /// `run`: of the latest Join or question. A push of another epoch, or on a base above the head, is of a
  /// version that is lost: it is not taken up.
  absl::Status TakeUp(const std::vector<FragmentLayout>& layout, std::vector<ContributionPacker>& packers,
                      const JoinInfo& run, std::optional<uint32_t> partition, Delivery& delivery,
                      Replica& replica);

  /// Payload and residual, as the packer holds them. Failing is logged: what is at stake is one residual.
  /// `time` is of the calling thread, and may be null.
  void Keep(Epoch epoch, const ContributionPacker& packer, TimeAccount* time);

  /// What became of what was packed, for the packer and on disk. A forgotten one has no verdict on disk.
  void Settle(ContributionPacker& packer, const DeliveryReport& report, TimeAccount* time);
  void Settle(ContributionPacker& packer, Verdict verdict, TimeAccount* time);

 private:
  absl::Status TakeUp(ContributionPacker& packer, KeptPush& kept, std::optional<uint32_t> partition,
                      Delivery& delivery, Replica& replica);
  /// What the coordinator answered about one without a verdict, after Restore.
  void Conclude(ContributionPacker& packer, const KeptPush& kept, const DeliveryReport& report);
  /// Nobody can tell whether it counted: its content is not given back, and it is no success either.
  void Forget(ContributionPacker& packer, const DeliveryReport& report);
  void WriteDown(const PushOffer& offer, Verdict verdict);
  void GiveUp(FragmentId fragment, const absl::Status& why);

  LocalState* const disk_;
  const WorkerContext context_;
};

/// Copies what else the next life needs: the state of the inner optimizer in a round on this base. False, and
/// nothing is kept, while the state of the round before is still being written. Followed by
/// LocalState::SaveRound, from any thread, once the push of fragment 0 is kept: a round on disk whose push is
/// not there would skip the push's samples.
bool CaptureRound(const Continuity& continuity, Epoch epoch, Version base, uint64_t committed_tokens,
                  Replica& replica, const WorkerContext& context);

/// CaptureRound, and writes it down in the background.
void KeepRound(const Continuity& continuity, Epoch epoch, Version base, uint64_t committed_tokens,
               Replica& replica, const WorkerContext& context);

/// Warms the learning rate up when the inner optimizer is new while the run, whose plan this is, is not.
void BeginRewarm(const Continuity& continuity, const RunOptions& run, const PlannedRound& plan,
                 const WorkerContext& context);

/// Signs that the worker's memory holds `published` as the version of this base, for the next heartbeat. It
/// is compared with what others sign where it is what the coordinator served: damaged memory is no reason to
/// distrust it.
void Confirm(const Continuity& continuity, const MemberRef& member, const FragmentBase& base,
             const ContentHash& published, Board& board);

}  // namespace atoll

#endif  // ATOLL_WORKER_SYNC_CONTINUITY_H_
