#ifndef ATOLL_COMMON_THREAD_H_
#define ATOLL_COMMON_THREAD_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/clock.h"

// Threads and their pauses. Blocking code uses only this header, common/mutex.h and an injected Clock or
// Sleeper. A program links one implementation: common/native_threads.cc runs the machine's threads on the
// machine's clock, simulate/fiber_threads.cc runs fibers, one at a time, in virtual time.

namespace atl {

/// Like std::thread. Move-only. The owner must join it before its destruction; otherwise the program ends.
class Thread {
 public:
  Thread();
  /// Throws std::system_error if the system cannot start another thread (common/thread_check.h).
  explicit Thread(std::function<void()> run);
  ~Thread();
  Thread(Thread&& other) noexcept;
  Thread& operator=(Thread&& other) noexcept;

  /// Whether the thread exists and has not been joined.
  bool joinable() const;
  /// Waits until the function has returned. Do not call it from the thread itself.
  void Join();

 private:
  class Body;  // the implementation's
  std::unique_ptr<Body> body_;
};

/// Different for all threads that run at the same time; never 0.
uint64_t CurrentThreadId();

/// Blocks the calling thread, for short pauses that need no interruption. Otherwise use a Sleeper.
void SleepThisThread(Duration duration);

/// Names the calling thread, for top and gdb (15 bytes are kept).
void SetThreadName(const std::string& name);

/// Gives the calling thread about a tenth of a normal thread's share if cores are short.
void LowerThreadPriority();

/// A thread-local pointer, null when the thread starts. Owned by common/trace_context.cc.
const void*& ThreadTraceSlot();

}  // namespace atl

#endif  // ATOLL_COMMON_THREAD_H_
