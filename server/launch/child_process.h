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
  int code = -1;   // -1: a signal ended it, or nobody can tell
  int signal = 0;  // 0: it ended by itself
  /// It ended by itself and has nothing more to do: code 0, or a drain whose last push did not count.
  bool clean() const { return signal == 0 && (code == 0 || code == ToInt(ExitCode::kUncounted)); }
};

/// "exit code 2 (command line or configuration)", "killed by SIGKILL".
std::string Describe(const ProcessExit& exit);

/// A child that leads a process group of its own: a Ctrl-C at our terminal does not reach it, and a signal
/// for it reaches what it started too. It is killed by the kernel when the thread that started it ends,
/// however that comes (PR_SET_PDEATHSIG): start it from a thread that lives as long as the child may. Only
/// this one process is ever waited for; other children of ours are not touched. Not thread-safe.
class ChildProcess {
 public:
  /// Runs arguments[0] (looked up in PATH when it has no slash), with nothing to read, and with what it
  /// writes appended to `log_path`. It inherits the environment, and no open file. Returns once the program
  /// runs. NotFound, PermissionDenied, ...: names the program or the log file.
  static absl::StatusOr<ChildProcess> Start(const std::vector<std::string>& arguments,
                                            const std::string& log_path);
  ChildProcess(ChildProcess&&) noexcept = default;
  ChildProcess& operator=(ChildProcess&&) = delete;
  /// Kills what is still running.
  ~ChildProcess();

  pid_t pid() const { return pid_; }
  /// Becomes readable when the process ends: for poll.
  int descriptor() const { return pidfd_.get(); }
  /// To the whole group.
  void Signal(int signal) const;
  /// Does not block: nothing while it runs. Once it ended, what is left of its group is killed.
  std::optional<ProcessExit> Reap();

 private:
  ChildProcess(pid_t pid, FileDescriptor pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}

  const pid_t pid_;
  FileDescriptor pidfd_;  // invalid: moved from, or reaped
};

}  // namespace atl

#endif  // ATOLL_SERVER_LAUNCH_CHILD_PROCESS_H_
