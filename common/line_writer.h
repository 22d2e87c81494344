#ifndef ATOLL_COMMON_LINE_WRITER_H_
#define ATOLL_COMMON_LINE_WRITER_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

// Log lines on a descriptor whose reader may stop reading: Ctrl-S on a terminal, a collector that hangs, a
// pipe that nobody reads.

namespace atl {

/// Writes lines from a thread of its own. A call waits until its line is written, so a crash, a fork or _exit
/// loses none. If a write takes longer than `patience`, calls only queue their lines until the queue is empty
/// again. A full queue drops the newest lines and counts them; one line says so when writing continues. Uses
/// the machine's threads and clock also in a program with virtual time, because it waits for a reader outside
/// of the program. Thread-safe.
class LineWriter {
 public:
  struct Options {
    int fd = -1;
    bool owns_fd = false;  // closes it at the end
    size_t max_bytes = size_t{1} << 20;
    /// Beyond max_bytes, for lines that are important.
    size_t reserve_bytes = size_t{1} << 18;
    std::chrono::milliseconds patience{100};
    std::chrono::milliseconds flush_limit{2000};
    /// Renders the line about dropped lines, with a newline. `seconds`: since the first of them. Runs on the
    /// writer's thread, perhaps after the destructor.
    std::function<std::string(uint64_t lines, double seconds)> dropped_text;
  };

  explicit LineWriter(const Options& options);
  /// Flushes. A thread that still waits for its reader is left to the end of the process.
  ~LineWriter();
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;

  /// Adds a line, which ends with a newline, and returns its number. Does not block.
  uint64_t Add(std::string line, bool important);
  /// Waits for a line as the class comment says.
  void AwaitWritten(uint64_t number);
  /// Waits until every line is written, at most flush_limit. Returns whether they are.
  bool Flush();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// Lines that all writers of this process have dropped so far.
uint64_t DroppedLogLines();

}  // namespace atl

#endif  // ATOLL_COMMON_LINE_WRITER_H_
