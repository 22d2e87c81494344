#ifndef ATOLL_CLIENT_SYNC_RESUME_STATE_H_
#define ATOLL_CLIENT_SYNC_RESUME_STATE_H_

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "client/sync/context.h"
#include "client/sync/delivery.h"
#include "client/sync/optimizer_warmup.h"
#include "client/sync/pseudo_gradient_encoder.h"
#include "client/sync/replica.h"
#include "client/sync/session.h"
#include "client/sync/worker_checkpoint.h"
#include "common/signature.h"

namespace atl {

struct FragmentBase;
class PeerAudit;

/// What makes a worker's next life go on where this one ends. The pointers may be null, but for
/// `optimizer_warmup`.
struct ResumeState {
  WorkerCheckpoint* checkpoint = nullptr;       // null: nothing is kept
  const SigningKey* key = nullptr;              // null: no confirmations are sent
  PeerAudit* audit = nullptr;                   // null: nobody compares with what others sign
  OptimizerWarmup* optimizer_warmup = nullptr;  // outlives the loop: it belongs to the inner optimizer
};

/// Contributions that outlive the process: on disk before their first byte is sent, settled there when it is
/// known what became of them. Different fragments may be kept and settled by different threads.
class PushJournal {
 public:
  /// `checkpoint` may be null: nothing is kept. It outlives this object.
  PushJournal(WorkerCheckpoint* checkpoint, const WorkerContext& context)
      : checkpoint_(checkpoint), context_(context) {}

  /// Settles what an earlier life pushed last, encoders[i] being of layout[i], and goes on after its samples.
  /// `run`: of the latest Join or question. A push of another epoch, or on a base above the head, is of a
  /// version that is lost: it is not taken up.
  absl::Status TakeUp(const std::vector<FragmentLayout>& layout, std::vector<PseudoGradientEncoder>& encoders,
                      const JoinedRun& run, std::optional<uint32_t> partition, Delivery& delivery,
                      Replica& replica);

  /// Payload and residual, as the encoder holds them, before the first byte is sent. Failing is logged: what
  /// is at stake is one residual. `time` is of the calling thread, and may be null.
  void Record(Epoch epoch, const PseudoGradientEncoder& encoder, TimeAccount* time);

  /// What became of what was packed, for the encoder and on disk. A forgotten one has no verdict on disk.
  void Settle(PseudoGradientEncoder& encoder, const DeliveryReport& report, TimeAccount* time);
  void Settle(PseudoGradientEncoder& encoder, Verdict verdict, TimeAccount* time);

 private:
  absl::Status TakeUp(PseudoGradientEncoder& encoder, PushRecord& kept, std::optional<uint32_t> partition,
                      Delivery& delivery, Replica& replica);
  /// What the coordinator answered about one without a verdict, after Restore.
  void Conclude(PseudoGradientEncoder& encoder, const PushRecord& kept, const DeliveryReport& report);
  /// Nobody can tell whether it counted: its content is not given back, and it is no success either.
  void Forget(PseudoGradientEncoder& encoder, const DeliveryReport& report);
  void WriteDown(const PushHeader& header, Verdict verdict);
  void GiveUp(FragmentId fragment, const absl::Status& why);

  WorkerCheckpoint* const checkpoint_;
  const WorkerContext context_;
};

/// Copies what else the next life needs: the state of the inner optimizer in a round on this base. False, and
/// nothing is kept, while the state of the round before is still being written. Followed by
/// WorkerCheckpoint::SaveRound, from any thread, once the push of fragment 0 is kept: a round on disk whose
/// push is not there would skip the push's samples.
bool CaptureRound(const ResumeState& resume_state, Epoch epoch, Version base, uint64_t committed_tokens,
                  Replica& replica, const WorkerContext& context);

/// CaptureRound, and writes it down in the background.
void CheckpointRound(const ResumeState& resume_state, Epoch epoch, Version base, uint64_t committed_tokens,
                     Replica& replica, const WorkerContext& context);

/// Warms the learning rate up when the inner optimizer is new while the run, whose plan this is, is not.
void BeginOptimizerWarmup(const ResumeState& resume_state, const RunOptions& run, const RoundPlan& plan,
                          const WorkerContext& context);

/// Signs that the worker's memory holds `published` as the version of this base, for the next heartbeat. It
/// is compared with what others sign where it is what the coordinator served: damaged memory is no reason to
/// distrust it.
void Confirm(const ResumeState& resume_state, const MemberRef& member, const FragmentBase& base,
             const ContentHash& published, WorkerStatus& worker_status);

}  // namespace atl

#endif  // ATOLL_CLIENT_SYNC_RESUME_STATE_H_
