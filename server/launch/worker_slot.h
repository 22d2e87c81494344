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
  std::string log_dir = {};  // NAME.log; existing text is kept, up to a size
  Duration grace{};          // between SIGTERM and SIGKILL
  Duration settled{};        // after a life this long, the next failure counts as the first
  BackoffOptions backoff = {};
};

/// One worker of a ProcessLauncher: its process and its next actions. Belongs to one thread, which must
/// outlive the process (see ChildProcess).
class WorkerSlot {
 public:
  WorkerSlot(const WorkerSlotOptions& options, WorkerName name, uint32_t number, uint64_t seed);

  /// Sends SIGTERM, and SIGKILL after the grace period; does not restart it.
  void Stop(MonoTime now);
  /// The worker is drained: lets it end by itself and does not restart it, however it ends.
  void Release();
  /// Ends a worker that drains and does not answer, as Stop does. It stays drained.
  void EndDrained(MonoTime now);
  /// The worker is wanted (still or again): when a process ends, also because it was draining, another one
  /// follows; a drained worker is started.
  void Want(MonoTime now);
  /// Starts it if it ended by itself because its work was done.
  void Revive(MonoTime now);
  /// A life that is under way may be about to end because there was nothing more to do: should it end so
  /// within a minute, it is started again, for there is.
  void ExpectEnd(MonoTime now);
  /// Ends it as Stop does, then starts it; one that waits is started at once.
  void Restart(MonoTime now);

  /// Does what is due: notices an end, kills, starts. Adds what happened to `events`.
  void Advance(MonoTime now, const std::string& coordinator, std::vector<Launcher::Event>& events);

  /// The worker was stopped: there is no process and no further start.
  bool gone() const { return gone_; }
  /// File descriptor for poll; -1 without a process.
  int descriptor() const { return process_ ? process_->descriptor() : -1; }
  /// The time of the next action of Advance, if nothing happens before.
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
  std::string HowItStopped() const;
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
  uint64_t log_begin_ = 0;     // of this life, in its log
  MonoTime due_{};             // of the start, or of SIGKILL
  uint32_t lives_ = 0;         // processes started so far
  uint32_t failures_ = 0;      // in a row
  MonoTime expected_until_{};  // ExpectEnd
  bool again_ = false;         // kStopping: another start follows
  bool drained_ = false;       // kStopping: it was draining
  bool drains_ = false;        // kRunning: it was wanted again while it drained, and may still leave
  bool killed_ = false;        // kStopping: the grace is over
  bool gone_ = false;
};

}  // namespace atl

#endif  // ATOLL_SERVER_LAUNCH_WORKER_SLOT_H_
