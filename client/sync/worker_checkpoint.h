#ifndef ATOLL_CLIENT_SYNC_WORKER_CHECKPOINT_H_
#define ATOLL_CLIENT_SYNC_WORKER_CHECKPOINT_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/sync/connection.h"
#include "client/sync/delivery.h"
#include "client/sync/replica.h"
#include "common/ids.h"
#include "common/log.h"
#include "common/mutex.h"
#include "common/task_queue.h"

namespace atl {

/// Whose state it is: that of another run, worker or model is refused.
struct StateOwner {
  std::string run_id;
  WorkerName worker;
  std::string manifest_hash;
};

/// A worker's state at the end of a round.
struct RoundCheckpoint {
  Epoch epoch;
  Version base;                         // that the round was trained on
  uint64_t committed_tokens = 0;        // of the whole run at that base: where the schedule stood
  uint32_t optimizer_warmup_steps = 0;  // see Rewarm
  uint32_t optimizer_warmup_left = 0;
  ReplicaState replica;
};

/// One fragment's latest contribution, and what its encoding lost.
struct PushRecord {
  Epoch epoch;
  PushHeader header;
  std::vector<std::byte> payload;
  std::vector<float> residual;     // after the encoding; empty: zero everywhere
  std::optional<Verdict> verdict;  // none: it may have been sent, nobody knows
};

/// What a worker keeps on its disk so that, killed at any moment and started again, it goes on as if nothing
/// had happened:
///
///   round-NNNNNN   RoundCheckpoint, written in the background at the end of each round; the newest two are
///   kept push-N         PushRecord of fragment N, on disk before its first byte is sent
///
/// Format: state_file.h. One owner, who calls from one thread, but that WritePush and SettlePush for
/// different fragments may be called from different threads; the destructor waits for the save in progress.
class WorkerCheckpoint {
 public:
  /// `folder` is made when it is not there, and is this worker's alone.
  static absl::StatusOr<std::unique_ptr<WorkerCheckpoint>> Open(const std::string& folder, StateOwner owner,
                                                                const Logger& log);

  /// Where to put the state of the round that has just ended, or null while the one before is still being
  /// written: training never waits for this disk. Followed by SaveRound, from any thread, or by BeginRound.
  RoundCheckpoint* BeginRound() ABSL_LOCKS_EXCLUDED(mutex_);
  void SaveRound();
  /// Waits for the save in progress.
  void Flush();
  /// The newest valid one; invalid ones are logged. NotFound when none was kept,
  /// FailedPrecondition when none of those that were can be used.
  absl::StatusOr<RoundCheckpoint> LoadRound();
  /// The run of a round that LoadRound could not use because it is of another run; empty: there was none.
  const std::string& other_run() const { return other_run_; }

  /// Blocks until it is on disk. On an error the former record is removed or marked as void: its residual
  /// went into this payload, and must not come back. Failing in that is logged.
  absl::Status WritePush(Epoch epoch, const PushHeader& header, std::span<const std::byte> payload,
                         std::span<const float> residual);
  /// Writes down what became of this push. NotFound when the fragment's record is not of it, as after a
  /// WritePush that failed.
  absl::Status SettlePush(const PushKey& push, uint32_t payload_crc32c, Verdict verdict);
  /// NotFound, or why it cannot be used.
  absl::StatusOr<PushRecord> LoadPush(FragmentId fragment);
  /// No later life finds the fragment's record.
  void DropPush(FragmentId fragment) const { VoidPush(PushPath(fragment)); }

  const std::string& folder() const { return folder_; }

 private:
  using Recorded = std::pair<PushKey, uint32_t>;  // and the crc32c of its payload

  WorkerCheckpoint(std::string folder, StateOwner owner, const Logger& log)
      : folder_(std::move(folder)), owner_(std::move(owner)), log_(log), queue_("worker-state") {}

  std::string RoundPath(uint64_t number) const;
  std::string PushPath(FragmentId fragment) const;
  void VoidPush(const std::string& path) const;
  absl::StatusOr<std::vector<uint64_t>> RoundNumbers() const;
  absl::Status WriteRound(const RoundCheckpoint& round);
  absl::StatusOr<RoundCheckpoint> ReadRound(const std::string& path);
  void Complain(const absl::Status& error);

  const std::string folder_;
  const StateOwner owner_;
  const Logger log_;
  std::string other_run_;
  RoundCheckpoint buffer_;    // the caller's between BeginRound and SaveRound, else the background thread's
  uint64_t next_number_ = 1;  // the background thread's, after Open
  bool failing_ = false;      // the background thread's
  Mutex mutex_;
  bool saving_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<FragmentId, Recorded> recorded_ ABSL_GUARDED_BY(mutex_);  // written or loaded by this object
  TaskQueue queue_;                                                  // last: its thread uses everything above
};

}  // namespace atl

#endif  // ATOLL_CLIENT_SYNC_WORKER_CHECKPOINT_H_
