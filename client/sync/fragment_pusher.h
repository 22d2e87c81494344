#ifndef ATOLL_CLIENT_SYNC_FRAGMENT_PUSHER_H_
#define ATOLL_CLIENT_SYNC_FRAGMENT_PUSHER_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/sync/context.h"
#include "client/sync/exchange_runner.h"
#include "client/sync/replica.h"
#include "client/sync/resume_state.h"
#include "client/sync/session.h"
#include "client/sync/stream_state.h"

namespace atl {

/// Sends the fragments of the overlapped loop when their time has come. The training thread's.
class FragmentPusher {
 public:
  /// All pointers outlive this object.
  FragmentPusher(StreamState* state, Session* session, Replica* replica, ExchangeRunner* runner,
                 const ResumeState& resume_state, const WorkerContext& context)
      : state_(*state),
        session_(session),
        replica_(replica),
        runner_(runner),
        resume_state_(resume_state),
        context_(context) {}

  /// Pushes what is due, and skips what has been due for too long.
  absl::Status PushDue();
  /// False: no channel is free, or there is nothing to push.
  absl::StatusOr<bool> Push(StreamedFragment& fragment);
  /// Its push on the base was accepted of an earlier life: only the answer is missing. False: no channel is
  /// free.
  bool AskForAnswer(StreamedFragment& fragment);

 private:
  void Skip(StreamedFragment& fragment);
  /// Another push may be sent.
  bool HasRoom() const;
  absl::Status Measure(StreamedFragment& fragment);
  void NotePushed(StreamedFragment& fragment, const PushHeader& claims);

  StreamState& state_;
  Session* const session_;
  Replica* const replica_;
  ExchangeRunner* const runner_;
  const ResumeState resume_state_;
  const WorkerContext context_;
};

}  // namespace atl

#endif  // ATOLL_CLIENT_SYNC_FRAGMENT_PUSHER_H_
