#ifndef ATOLL_WORKER_ISLAND_RANK_PROCESS_H_
#define ATOLL_WORKER_ISLAND_RANK_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/file_descriptor.h"
#include "common/line_writer.h"
#include "common/log.h"

namespace atl {

/// How a process ended.
struct RankEnd {
  bool by_signal = false;
  int code = 0;  // exit code, or number of the signal

  /// "killed by signal 9 (Killed)", "ended with exit code 6".
  std::string Text() const;
  /// Whether a signal that asks for an end ended it (SIGTERM, SIGINT, SIGHUP), as it does without a handler.
  bool WasOrdered() const;
};

/// Ends what RankProcess::Start began: SIGTERM, SIGINT and SIGHUP reach this thread and those that it starts,
/// also those sent since the process began. Call it in the rank, on the main thread, once its handlers stand.
void AcceptStopSignals();

/// One rank's process, of which the standard error is read here. Not thread-safe.
class RankProcess {
 public:
  /// Executes this program again with these arguments and variables ("NAME=value"). It gets SIGTERM when the
  /// calling thread ends, and no signal of the terminal. It begins with SIGTERM, SIGINT and SIGHUP blocked,
  /// so that they wait for its handlers: see AcceptStopSignals.
  static absl::StatusOr<RankProcess> Start(uint32_t rank, char* const* arguments,
                                           const std::vector<std::string>& environment);

  uint32_t rank() const { return rank_; }
  int log_descriptor() const { return log_.get(); }
  bool running() const { return !end_.has_value(); }
  const std::optional<RankEnd>& end() const { return end_; }

  /// Prints what can be read now, line by line, each with the rank: its log lines through `lines`, and what
  /// libraries print as lines of `log`. `all`: also a last line without an end. Waits for no reader for
  /// longer than LineWriter says.
  void ForwardLog(const Logger& log, LineWriter& lines, bool all = false);
  /// Notes the end, without waiting for it. True once, when it has ended.
  bool CheckEnd();
  void Signal(int signal) const;

 private:
  RankProcess(uint32_t rank, pid_t process, FileDescriptor log)
      : rank_(rank), process_(process), log_(std::move(log)) {}
  void Print(const std::string& line, const Logger& log, LineWriter& lines) const;

  uint32_t rank_;
  pid_t process_;
  FileDescriptor log_;
  std::string unfinished_;  // of the last line
  std::optional<RankEnd> end_;
};

}  // namespace atl

#endif  // ATOLL_WORKER_ISLAND_RANK_PROCESS_H_
