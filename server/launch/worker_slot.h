#ifndef ATOLL_SERVER_LAUNCH_WORKER_SLOT_H_
#define ATOLL_SERVER_LAUNCH_WORKER_SLOT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/backoff.h"
#include "common/clock.h"
#include "server/launch/child_process.h"
#include "server/launch/launch_command.h"
#include "server/launch/launcher.h"

namespace atl {

struct WorkerSlotOptions {
  LaunchCommand command = {};
  std::string log_dir = {};  // NAME.log; what is there is kept, up to a size
  Duration grace{};          // between SIGTERM and SIGKILL
  Duration settled{};        // a life as long as this makes the next failure the first one again
  BackoffOptions backoff = {};
};

/// One worker of a ProcessLauncher: its process, and what becomes of it. Belongs to one thread, which must
/// live as long as the process may (see ChildProcess).
class WorkerSlot {
 public:
  WorkerSlot(const WorkerSlotOptions& options, WorkerName name, uint32_t number, uint64_t seed);

  /// SIGTERM, and SIGKILL when the grace is over; not started again.
  void Stop(MonoTime now);
  /// It is drained: left to end by itself, and not started again however it ends.
  void Release();
  /// It is wanted (still, or again): a process that is ending is followed by another one, also one that ends
  /// by itself because it was draining; one that has drained is started.
  void Want(MonoTime now);
  /// Starts it when it ended by itself, having nothing more to do.
  void Revive(MonoTime now);
  /// A life that is under way may be about to end because there was nothing more to do: should it end so
  /// within a minute, it is started again, for there is.
  void ExpectEnd(MonoTime now);
  /// Ends it as Stop does, then starts it; one that waits is started at once.
  void Restart(MonoTime now);

  /// Does what is due: notices an end, kills, starts. Adds what happened to `events`.
  void Advance(MonoTime now, const std::string& coordinator, std::vector<Launcher::Event>& events);

  /// There is no process, and there will be none: it was stopped.
  bool gone() const { return gone_; }
  /// For poll; -1 without a process.
  int descriptor() const { return process_ ? process_->descriptor() : -1; }
  /// When Advance has something to do, if nothing happens before.
  std::optional<MonoTime> due() const;

  LaunchedWorker Show(MonoTime now) const;
  /// Why it is not running though it should, or why its lives before this one ended, when that were two or
  /// more in a row; empty: nothing is wrong. Holds until settles_at().
  const std::string& trouble() const { return trouble_; }
  /// When the life that is under way will have been long enough to forget those before; none without a
  /// process.
  std::optional<MonoTime> settles_at() const;
  const std::string& log_path() const { return log_path_; }

 private:
  using State = LaunchedWorker::State;
  void Ask(MonoTime now);
  void StartAt(MonoTime when, State state);
  void OnExit(MonoTime now, const ProcessExit& exit, std::vector<Launcher::Event>& events);
  void OnFailure(MonoTime now, const std::string& what, std::vector<Launcher::Event>& events);
  void Launch(MonoTime now, const std::string& coordinator, std::vector<Launcher::Event>& events);
  void Report(bool launched, std::string message, std::vector<Launcher::Event>& events) const;

  const WorkerSlotOptions& options_;
  const uint32_t number_;
  const std::string log_path_;
  Backoff backoff_;
  std::optional<ChildProcess> process_;
  LaunchedWorker shown_;
  std::string trouble_;
  MonoTime started_{};
  MonoTime due_{};             // of the start, or of SIGKILL
  uint32_t lives_ = 0;         // processes started so far
  uint32_t failures_ = 0;      // in a row
  MonoTime expected_until_{};  // ExpectEnd
  bool again_ = false;         // kStopping: another start follows
  bool drains_ = false;        // kRunning: it was wanted again while it drained, and may still leave
  bool killed_ = false;        // kStopping: the grace is over
  bool gone_ = false;
};

}  // namespace atl

#endif  // ATOLL_SERVER_LAUNCH_WORKER_SLOT_H_
