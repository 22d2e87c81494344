#ifndef ATOLL_TESTS_INTEGRATION_PROCESS_H_
#define ATOLL_TESTS_INTEGRATION_PROCESS_H_

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/clock.h"

namespace atl {

/// A real child process whose output goes to a file. Killed when this is destroyed, and by the kernel should
/// the test die. Not thread-safe.
class Process {
 public:
  /// Starts arguments[0] with its output appended to `log_path`.
  static absl::StatusOr<std::unique_ptr<Process>> Start(const std::vector<std::string>& arguments,
                                                        const std::string& log_path);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  bool running();
  void Signal(int signal);
  /// Signal(SIGKILL) and reap.
  void Kill();
  /// Exit code, 128 + signal when one ended it; nullopt when it still runs after `timeout`.
  std::optional<int> Wait(Duration timeout);

 private:
  explicit Process(pid_t pid) : pid_(pid) {}
  bool Reap(int flags);

  const pid_t pid_;
  std::optional<int> exit_code_;
};

/// A program run to its end: its exit code, and standard output and error as one text.
struct Finished {
  int exit_code = -1;
  std::string output;
};
Finished RunToEnd(const std::vector<std::string>& arguments, Duration timeout);

}  // namespace atl

#endif  // ATOLL_TESTS_INTEGRATION_PROCESS_H_
