#ifndef ATOLL_COMMON_THREAD_H_
#define ATOLL_COMMON_THREAD_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/clock.h"

// Threads, and the time they wait for. Code that blocks uses only these, common/mutex.h and an injected Clock
// or Sleeper. A program links one implementation: common/native_threads.cc runs the machine's threads on the
// machine's clock, simulate/fiber_threads.cc runs fibers, one at a time, in virtual time.

namespace atl {

/// As std::thread: runs a function beside the others until it returns. Move-only. The owner joins it before
/// it is destroyed; otherwise the program ends.
class Thread {
 public:
  Thread();
  /// Throws std::system_error when the machine has no thread left (common/thread_check.h).
  explicit Thread(std::function<void()> run);
  ~Thread();
  Thread(Thread&& other) noexcept;
  Thread& operator=(Thread&& other) noexcept;

  /// Whether there is a thread that nobody has joined.
  bool joinable() const;
  /// Waits until the function has returned. Not from the thread itself.
  void Join();

 private:
  class Body;  // the implementation's
  std::unique_ptr<Body> body_;
};

/// Different for all threads that run at the same time; never 0.
uint64_t CurrentThreadId();

/// Blocks the calling thread. For short pauses that nobody interrupts; others use a Sleeper.
void SleepThisThread(Duration duration);

/// Names the calling thread, for top and gdb (15 bytes are kept).
void SetThreadName(const std::string& name);

/// Leaves the calling thread about a tenth of a normal thread's share where cores are short.
void LowerThreadPriority();

/// A pointer of the calling thread's own, null when the thread starts. common/trace_context.cc owns it.
const void*& ThreadTraceSlot();

}  // namespace atl

#endif  // ATOLL_COMMON_THREAD_H_
