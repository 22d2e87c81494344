#ifndef ATOLL_WORKER_SYNC_OVERLAPPED_SYNC_H_
#define ATOLL_WORKER_SYNC_OVERLAPPED_SYNC_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "core/fragment_schedule.h"
#include "worker/sync/context.h"
#include "worker/sync/exchange_runner.h"
#include "worker/sync/heartbeater.h"
#include "worker/sync/outer_sync.h"
#include "worker/sync/resume_state.h"
#include "worker/sync/streamed_fragment.h"

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
  ~OverlappedSync();

  /// As OuterSync::Run.
  absl::StatusOr<SyncEnd> Run();

  const PseudoGradientEncoder& encoder(size_t fragment) const { return encoders_[fragment]; }
  const FragmentSchedule& schedule() const { return *schedule_; }

 private:
  using MaybeEnd = std::optional<SyncEnd>;

  absl::StatusOr<SyncEnd> Loop();
  absl::StatusOr<MaybeEnd> Begin(ParameterPuller& puller);
  void TakeOver(std::vector<FragmentBase> bases);
  absl::StatusOr<MaybeEnd> Turn();
  absl::Status Step();
  /// The share of the fragments whose contribution has all the steps that it is to have, and is still not on
  /// its way: a worker that waited for its exchanges would not take this step.
  double OverdueShare() const;
  absl::Status PushDue();
  void Skip(StreamedFragment& fragment);
  /// False: no channel is free, or there is nothing to push.
  absl::StatusOr<bool> Push(StreamedFragment& fragment);
  /// Its push on the base was accepted of an earlier life: only the answer is missing.
  /// Another push may be sent.
  bool HasRoom() const;
  bool AskForAnswer(StreamedFragment& fragment);
  absl::Status Measure(StreamedFragment& fragment);

  // Answers (overlapped_answers.cc).
  absl::Status UseAnswers();
  absl::Status Use(StreamedFragment& fragment, const ExchangeAnswer& answer);
  absl::Status Adopt(StreamedFragment& fragment, const ExchangeAnswer& answer);
  /// The local parameters of the fragment become what its exchange pulled; of the inner steps that were taken
  /// meanwhile stays what run_.sync says, or nothing.
  absl::Status TakeAnswer(StreamedFragment& fragment, bool as_published);
  /// Of fragment 0: schedule, data and evaluation go by its plan. `counted_to`: the inner step up to
  /// which this worker's tokens are in it.
  absl::Status NoteFirst(const StreamedFragment& fragment, uint64_t counted_to);
  absl::Status GoToData(const PlannedRound& plan);
  void LogRejection(const StreamedFragment& fragment, const DeliveryReport& report);
  uint64_t StepsIn(Duration time) const;
  /// Back to the bases: a number was not finite. Nothing more once the worker has to give up.
  absl::Status DropWindows(const absl::Status& why);
  absl::Status EvaluateBases(Version version);

  // Commands and ends (overlapped_commands.cc).
  absl::Status CheckMembership(const WorkerCommands& commands);
  absl::StatusOr<MaybeEnd> FollowCommands();
  absl::StatusOr<MaybeEnd> EndOfTurn();
  /// Pushes what is done of every fragment that has no push unanswered, and waits until all are acknowledged.
  absl::StatusOr<MaybeEnd> Flush(SyncEnd end);
  absl::StatusOr<MaybeEnd> AwaitAcknowledgments(SyncEnd end);
  absl::Status Resync();
  bool LeftBehind(const StreamedFragment& fragment) const {
    return fragment.finished || fragment.pushed_to_leave;
  }
  bool AllFinished() const;

  const OuterSyncOptions options_;
  const Parts parts_;
  const std::vector<FragmentLayout> layout_;
  const ResumeState resume_state_;
  const WorkerContext context_;
  RunOptions run_;
  uint64_t config_version_ = 0;
  PushJournal push_journal_;
  std::vector<PseudoGradientEncoder> encoders_;
  std::vector<std::unique_ptr<StreamedFragment>> fragments_;
  std::unique_ptr<FragmentSchedule> schedule_;
  std::vector<float> scratch_;
  std::vector<std::vector<float>> aside_;  // local parameters during an evaluation
  std::optional<uint32_t> partition_;      // of the shared data that the replica stands in
  uint64_t pushed_position_ = 0;           // in it, at the last push of fragment 0

  // Where the learning rate's schedule stands: tokens committed at fragment 0's base, and the inner step up
  // to which this worker's are part of them.
  uint64_t committed_tokens_ = 0;
  uint64_t committed_at_ = 0;
  uint64_t first_pushed_at_ = 0;  // fragment 0, last

  Duration computed_{};  // in inner steps
  std::optional<Version> to_evaluate_;
  bool evaluate_last_ = false;  // to_evaluate_ is fragment 0's last one
  bool reconfigured_ = false;   // a plan names a newer configuration
  bool leaving_ = false;        // drains in its own time
  bool flushing_ = false;       // no answer is waited for any more
  bool hopeless_ = false;       // number after number is not finite
  struct Rejoining {
    Mutex mutex;
    bool under_way ABSL_GUARDED_BY(mutex) = false;
    absl::Status result ABSL_GUARDED_BY(mutex);
  };
  Rejoining rejoining_;
  uint32_t generation_ = 0;  // how often the windows were dropped
  uint32_t not_finite_ = 0;  // in a row
  MonoTime round_began_{};
};

}  // namespace atl

#endif  // ATOLL_WORKER_SYNC_OVERLAPPED_SYNC_H_
