#ifndef ATOLL_CLIENT_SYNC_SESSION_H_
#define ATOLL_CLIENT_SYNC_SESSION_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/sync/connection.h"
#include "client/sync/context.h"
#include "client/sync/rejection.h"
#include "common/mutex.h"

namespace atl {

/// A worker's membership: joins, and joins again when the coordinator has forgotten it. The training
/// thread's, but for what says that it is for any thread: the threads of exchanges meet here. (The heartbeat
/// thread reads the member from the worker status.)
class Session {
 public:
  /// `connection` retries and outlives the session.
  Session(CoordinatorConnection* connection, JoinCall parameters, const WorkerContext& context)
      : connection_(connection), parameters_(std::move(parameters)), context_(context) {}

  /// The run's configuration, for building the model; not a member yet. From here on no other run is joined.
  absl::StatusOr<JoinedRun> Describe();

  /// Becomes a member with this model.
  absl::Status Join(const std::string& manifest_hash);

  /// Tells the coordinator of a model that is not the described run's, which this process has found out by
  /// itself. The coordinator rejects it, and its operator sees why this worker is not there.
  void ReportOtherModel(const JoinedRun& described);

  /// Joins again because of `cause` (NOT_A_MEMBER, WRONG_EPOCH). WRONG_EPOCH when the run was restored
  /// meanwhile, or the worker's data or configuration is another one now: local progress is void.
  absl::Status Rejoin(const absl::Status& cause);

  /// From any thread: Rejoin for a call that failed as `used`, unless another has joined again since. From
  /// here on, until TakeRestartPending, everybody gets WRONG_EPOCH once one has got it.
  /// `over`: a connection of the calling thread's; null: the session's.
  absl::Status RejoinAs(const MemberRef& used, const absl::Status& cause,
                        CoordinatorConnection* over = nullptr) ABSL_LOCKS_EXCLUDED(joining_);
  /// From any thread: whether the call that failed as `used` was refused because this process itself has
  /// joined again since. Waits for a Join that is under way: its answer may come later than the refusal.
  bool IsSupersededByItself(const MemberRef& used, const absl::Status& failure) ABSL_LOCKS_EXCLUDED(joining_);
  /// From any thread: who the worker is now.
  MemberRef member() const ABSL_LOCKS_EXCLUDED(mutex_);

  /// Whether Rejoin has answered WRONG_EPOCH: the worker starts again under the membership that it has
  /// already, without another Join, which the run would hear of as a second return. True once.
  bool TakeRestartPending() ABSL_LOCKS_EXCLUDED(joining_) {
    const MutexLock lock(&joining_);
    return std::exchange(restart_pending_, false);
  }

  /// Asks for the configuration that is in force now; the membership stays as it is.
  absl::Status Reconfigure();

  /// The plan sends the worker to another part of the data: that is its part until the next Join.
  void MoveTo(const DataPart& data) ABSL_LOCKS_EXCLUDED(mutex_) {
    const MutexLock lock(&mutex_);
    info_.data = data;
  }

  /// From any thread: call(member), again after a Rejoin for as long as that is the answer to its failure,
  /// and when another thread joined again while it was under way.
  template <typename Call>
  auto With(Call call, CoordinatorConnection* over = nullptr) -> decltype(call(MemberRef())) {
    while (true) {
      const MemberRef used = member();
      auto result = call(used);
      if (result.ok()) return result;
      if (IsSupersededByItself(used, StatusOf(result))) continue;
      if (ReactionTo(StatusOf(result)) != Reaction::kRejoin) return result;
      const absl::Status rejoined = RejoinAs(used, StatusOf(result), over);
      if (!rejoined.ok()) return rejoined;
    }
  }

  /// Follows what heartbeats learnt about the membership: Rejoin, or the refusal itself when it is final.
  absl::Status CheckMembership(const WorkerCommands& commands);
  /// What heartbeats learnt, once no Join is under way that may have caused it.
  absl::Status SettledMembership(const WorkerCommands& commands) ABSL_LOCKS_EXCLUDED(joining_);

  /// Of the latest Join. Not while exchanges are under way, which may join again.
  const JoinedRun& info() const { return info_; }
  bool joined() const { return joined_; }
  CoordinatorConnection* connection() const { return connection_; }
  /// Goodbye; a failure is logged and no more, since the lease ends by itself.
  void Leave(const std::string& reason);

 private:
  /// Before and after a Rejoin: OK when the worker may go on with its local progress.
  static absl::Status CheckContinues(const JoinedRun& before, const JoinedRun& now);
  static const absl::Status& StatusOf(const absl::Status& status) { return status; }
  template <typename T>
  static const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
    return result.status();
  }

  absl::Status JoinOver(CoordinatorConnection& connection);
  JoinedRun Snapshot() const ABSL_LOCKS_EXCLUDED(mutex_);

  CoordinatorConnection* const connection_;
  JoinCall parameters_;
  const WorkerContext context_;
  Mutex joining_;        // held over a Join
  mutable Mutex mutex_;  // of info_, when it changes while others look
  JoinedRun info_;
  bool joined_ = false;
  bool restart_pending_ ABSL_GUARDED_BY(joining_) = false;
};

}  // namespace atl

#endif  // ATOLL_CLIENT_SYNC_SESSION_H_
