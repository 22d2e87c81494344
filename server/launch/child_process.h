#ifndef ATOLL_SERVER_LAUNCH_CHILD_PROCESS_H_
#define ATOLL_SERVER_LAUNCH_CHILD_PROCESS_H_

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/exit_codes.h"
#include "common/file_descriptor.h"

namespace atl {

/// How a process ended.
struct ProcessExit {
  int code = -1;   // -1: a signal ended it, or unknown
  int signal = 0;  // 0: it ended by itself
  /// It ended by itself because its work is done: code 0, or a drain whose last push did not count.
  bool clean() const { return signal == 0 && (code == 0 || code == ToInt(ExitCode::kUncounted)); }
};

/// "exit code 2 (command line or configuration)", "killed by SIGKILL".
std::string Describe(const ProcessExit& exit);

/// A child process that leads a separate process group, so that Ctrl-C on our terminal does not reach it, and
/// a signal for it also reaches its own children. The kernel kills it when the thread that started it ends
/// for any reason (PR_SET_PDEATHSIG), so start it from a thread that outlives it. Waits only for this process
/// and does not touch our other children. Not thread-safe.
class ChildProcess {
 public:
  /// Runs arguments[0] (looked up in PATH if it has no slash) with empty standard input, and appends its
  /// output to `log_path`. It inherits the environment but no open files. Returns when the program runs.
  /// Errors (NotFound, PermissionDenied, ...) name the program or the log file.
  static absl::StatusOr<ChildProcess> Start(const std::vector<std::string>& arguments,
                                            const std::string& log_path);
  ChildProcess(ChildProcess&&) noexcept = default;
  ChildProcess& operator=(ChildProcess&&) = delete;
  /// Kills the process if it is still running.
  ~ChildProcess();

  pid_t pid() const { return pid_; }
  /// Becomes readable when the process ends: for poll.
  int descriptor() const { return pidfd_.get(); }
  /// To the whole group.
  void Signal(int signal) const;
  /// Does not block; nullopt while the process runs. When it has ended, kills the rest of its group.
  std::optional<ProcessExit> Reap();

 private:
  ChildProcess(pid_t pid, FileDescriptor pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}

  const pid_t pid_;
  FileDescriptor pidfd_;  // invalid: moved from, or reaped
};

}  // namespace atl

#endif  // ATOLL_SERVER_LAUNCH_CHILD_PROCESS_H_
