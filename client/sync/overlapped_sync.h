#ifndef ATOLL_CLIENT_SYNC_OVERLAPPED_SYNC_H_
#define ATOLL_CLIENT_SYNC_OVERLAPPED_SYNC_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "client/sync/answer_adopter.h"
#include "client/sync/background_rejoin.h"
#include "client/sync/context.h"
#include "client/sync/exchange_runner.h"
#include "client/sync/fragment_pusher.h"
#include "client/sync/heartbeater.h"
#include "client/sync/resume_state.h"
#include "client/sync/stream_state.h"
#include "client/sync/sync_end.h"
#include "core/fragment_schedule.h"

namespace atl {

/// The overlapped loop (Streaming DiLoCo, arXiv 2501.18512; docs/reference/streaming.md): fragments are
/// pushed one after the other, the inner steps go on, and what was published is blended in when it is there.
/// It waits for the network only at its start, after a command to resync, and when it leaves.
///
/// One object lives for one epoch of the run, one configuration and one replica. Not thread-safe; the
/// exchanges are beside it, and none is left when Run returns. Memory per parameter: 4 bytes of base, 4 of
/// residual, 4 of pseudo-gradient (where the answer is decoded), and the encoded payload; for the largest
/// fragment 4 more.
class OverlappedSync {
 public:
  /// What it shares with the other loop, and its own. All pointers outlive this object. `replica` stands at
  /// its place in the data.
  struct Parts {
    Session* session = nullptr;
    Replica* replica = nullptr;
    RetryPolicy* retry_policy = nullptr;
    Heartbeater* heartbeater = nullptr;
    ExchangeRunner* runner = nullptr;
    ExchangeSetting* setting = nullptr;  // of the runner's channels
  };
  OverlappedSync(const OuterSyncOptions& options, const Parts& parts,
                 const std::vector<FragmentLayout>& layout, const ResumeState& resume_state,
                 const WorkerContext& context);

  /// As OuterSync::Run.
  absl::StatusOr<SyncEnd> Run();

  /// As OuterSync::not_finite.
  const absl::Status& not_finite() const { return state_.guard.why(); }

  const PseudoGradientEncoder& encoder(size_t fragment) const { return encoders_[fragment]; }
  const FragmentSchedule& schedule() const { return *state_.schedule; }

 private:
  using MaybeEnd = std::optional<SyncEnd>;

  absl::StatusOr<SyncEnd> Loop();
  /// Waits for the first version of every fragment.
  absl::StatusOr<MaybeEnd> Begin(ParameterPuller& puller);
  void TakeOver(std::vector<FragmentBase> bases);
  absl::StatusOr<MaybeEnd> Turn();
  /// False: the replica has no more steps to give, and the worker drains.
  absl::StatusOr<bool> Step();
  /// The share of the fragments whose contribution has all the steps that it is to have, and is still not on
  /// its way: a worker that waited for its exchanges would not take this step.
  double OverdueShare() const;
  absl::Status EvaluateBases(const EvaluationOrder& order);

  absl::StatusOr<MaybeEnd> EndOfTurn();
  absl::StatusOr<MaybeEnd> FollowCommands();
  /// Pushes what is done of every fragment that has no push unanswered, and waits until all are acknowledged.
  absl::StatusOr<MaybeEnd> Flush(SyncEnd end);
  absl::StatusOr<MaybeEnd> AwaitAcknowledgments(SyncEnd end);
  absl::Status Resync();
  /// After the loop, of a drain that had no time left: the steps that are in no push are lost.
  void NoteUnpacked();

  const Parts parts_;
  const std::vector<FragmentLayout> layout_;
  const ResumeState resume_state_;
  const WorkerContext context_;
  PushJournal push_journal_;
  std::vector<PseudoGradientEncoder> encoders_;
  StreamState state_;
  FragmentPusher pusher_;
  AnswerAdopter adopter_;
  BackgroundRejoin rejoin_;
};

}  // namespace atl

#endif  // ATOLL_CLIENT_SYNC_OVERLAPPED_SYNC_H_
