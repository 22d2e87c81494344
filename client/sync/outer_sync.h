#ifndef ATOLL_CLIENT_SYNC_OUTER_SYNC_H_
#define ATOLL_CLIENT_SYNC_OUTER_SYNC_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "client/sync/context.h"
#include "client/sync/data_cursor.h"
#include "client/sync/delivery.h"
#include "client/sync/divergence_guard.h"
#include "client/sync/heartbeater.h"
#include "client/sync/inner_round.h"
#include "client/sync/parameter_puller.h"
#include "client/sync/pseudo_gradient_encoder.h"
#include "client/sync/replica.h"
#include "client/sync/resume_state.h"
#include "client/sync/session.h"
#include "client/sync/sync_end.h"

namespace atl {

/// The blocking DiLoCo loop (arXiv 2311.08105): adopt the published parameters, take H inner steps, push the
/// pseudo-gradient base - local, wait for the next version. One object lives for one epoch of the run, one
/// configuration and one replica.
///
/// Payload and next residual are on disk before a push is sent; what an earlier life left there is settled
/// before anything else is done.
///
/// Local parameters never survive a push: whatever its verdict, the next thing is the published version, and
/// what was refused returns to the error-feedback residual. Not thread-safe. Memory per parameter: 4 bytes of
/// base, 4 of residual, 4 of pseudo-gradient, and the encoded payload.
class OuterSync {
 public:
  /// All pointers outlive this object. `replica` stands at its place in the data.
  OuterSync(const OuterSyncOptions& options, Session* session, Replica* replica,
            const std::vector<FragmentLayout>& layout, const ResumeState& resume_state,
            RetryPolicy* retry_policy, Heartbeater* heartbeater, const WorkerContext& context);

  /// Runs until there is a reason to end. WRONG_EPOCH (rejection.h): local progress is void, join and start
  /// again.
  absl::StatusOr<SyncEnd> Run();

  /// After kDiverged: what was not finite in the last round.
  const absl::Status& not_finite() const { return guard_.why(); }

  const PseudoGradientEncoder& encoder(size_t fragment) const { return encoders_[fragment]; }

 private:
  using Until = ParameterPuller::Until;
  using Outcome = ParameterPuller::Outcome;
  /// What to pull next, or why to end.
  struct NextMove {
    Until until = Until::kNext;
    std::optional<SyncEnd> end = std::nullopt;
  };

  /// Asked before each inner step; waits here while the run is paused.
  absl::StatusOr<bool> Interrupted();
  absl::StatusOr<NextMove> Work();
  absl::StatusOr<NextMove> TrainAndPush();
  absl::StatusOr<NextMove> FollowCommands();
  /// The steps of the round are lost: a drain had no time left for its push.
  void NoteUnpacked();
  absl::Status EncodeAll(const InnerRound& round);
  /// Payload and residual of every fragment, on disk before the first byte is sent; everything else in the
  /// background.
  void KeepAll();
  void ConfirmAll();
  absl::StatusOr<NextMove> PushAll(const InnerRound& round);
  /// None: on with the next fragment.
  absl::StatusOr<std::optional<NextMove>> Deliver(size_t fragment);
  NextMove DropRound(const absl::Status& error);
  bool AllDone() const;
  void LogRound(const InnerRound& round, Duration duration);

  Session* const session_;
  Replica* const replica_;
  const std::vector<FragmentLayout> layout_;
  const ResumeState resume_state_;
  RetryPolicy* const retry_policy_;
  Heartbeater* const heartbeater_;
  const WorkerContext context_;
  ParameterPuller puller_;
  Delivery delivery_;
  PushJournal push_journal_;
  std::vector<PseudoGradientEncoder> encoders_;
  std::vector<float> scratch_;  // pseudo-gradient of the fragment being packed
  DataCursor data_;
  DivergenceGuard guard_;
  std::optional<Version> evaluated_;
};

}  // namespace atl

#endif  // ATOLL_CLIENT_SYNC_OUTER_SYNC_H_
