#ifndef ATOLL_SERVER_ADMIN_CHECKPOINT_KEEPER_H_
#define ATOLL_SERVER_ADMIN_CHECKPOINT_KEEPER_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/mutex.h"
#include "common/task_queue.h"
#include "server/admin/admin_control.h"
#include "server/admin/restore.h"
#include "server/coordinator_context.h"

namespace atl {

/// Checkpoints of the run: made on demand and every checkpoint.every versions while rounds go on, rotated,
/// restored. Announces CHECKPOINT_CREATED, CHECKPOINT_DELETED, CHECKPOINT_FAILED and RUN_RESTORED.
/// Thread-safe; calls block on the disk and exclude each other, automatic checkpoints are made on a thread of
/// its own.
class CheckpointKeeper {
 public:
  /// `context` and `driver` outlive it.
  CheckpointKeeper(const CoordinatorContext& context, RoundDriver* driver);
  ~CheckpointKeeper() { Stop(); }

  /// `name` empty: named after version and time. Returns once it survives a power cut. AlreadyExists;
  /// InvalidArgument for a name; FailedPrecondition while the run is not seeded; ResourceExhausted.
  absl::StatusOr<CheckpointView> Create(const std::string& name);
  /// By time of creation. `check`: reads every file and compares its checksum; what is damaged is listed with
  /// the damage named.
  absl::StatusOr<std::vector<CheckpointView>> List(bool check);
  /// Commits the old contents as version head + 1 of every fragment under a new epoch, which nothing of the
  /// old one can enter. NotFound; DataLoss naming the damaged file, and nothing is changed.
  absl::StatusOr<RestoreResult> Restore(const std::string& name);
  absl::Status Delete(const std::string& name);

  /// Reports the newest existing checkpoint to the observer.
  void ReportNewest() const;
  /// The tensors of this version are on disk: makes an automatic checkpoint when one is due. Does not block.
  void VersionStored(FragmentId fragment, Version version);
  /// Finishes the current checkpoint, joins the thread. Idempotent.
  void Stop() { queue_.Stop(); }

 private:
  absl::StatusOr<CheckpointView> Make(const std::string& name, bool automatic);
  void MakeAutomatic(Version version);
  /// Of the automatic checkpoint of this version. An operator may have given the usual name to one of their
  /// own, which is kept: this one then gets a number.
  absl::StatusOr<std::string> AutomaticName(Version version, bool for_good);
  absl::Status Rotate();
  void Announce(EventKind kind, Version version, const std::string& message);

  const CoordinatorContext& context_;
  RoundDriver* const driver_;
  Mutex mutex_;      // one at a time; held over the disk's work
  TaskQueue queue_;  // last: its thread uses everything above
};

}  // namespace atl

#endif  // ATOLL_SERVER_ADMIN_CHECKPOINT_KEEPER_H_
