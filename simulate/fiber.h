#ifndef ATOLL_SIMULATE_FIBER_H_
#define ATOLL_SIMULATE_FIBER_H_

#include <setjmp.h>
#include <ucontext.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace atl {

/// Memory for a fiber's stack, with a page below it that ends the program when the stack is too small.
class FiberStack {
 public:
  /// Ends the program when the machine has no memory left.
  explicit FiberStack(size_t bytes);
  ~FiberStack();
  FiberStack(FiberStack&& other) noexcept;
  FiberStack& operator=(FiberStack&&) = delete;

  std::byte* bottom() const { return bottom_; }
  size_t bytes() const { return bytes_; }

 private:
  std::byte* bottom_;  // of the usable part
  size_t bytes_;
};

/// A function on a stack of its own, which is resumed and gives way by calls. ThreadSanitizer and
/// AddressSanitizer are told of each switch. Not thread-safe.
class Fiber {
 public:
  Fiber(FiberStack stack, std::function<void()> run);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Continues the function until it gives way or returns. Not from a fiber.
  void Resume();
  /// From the function: returns from Resume.
  void GiveWay();
  bool ended() const { return ended_; }
  /// For another fiber. Only of one that has ended.
  FiberStack TakeStack() { return std::move(stack_); }

 private:
  static void Enter(uint32_t high, uint32_t low);
  [[noreturn]] void Main();

  FiberStack stack_;
  std::function<void()> run_;
  void SwitchIn();
  void SwitchOut();

  ucontext_t own_;
  ucontext_t caller_;
  jmp_buf own_place_;
  jmp_buf caller_place_;
  bool entered_ = false;
  bool ended_ = false;
  // Of the sanitizers.
  void* fake_stack_ = nullptr;
  const void* caller_stack_ = nullptr;
  size_t caller_stack_bytes_ = 0;
  void* tsan_own_ = nullptr;
  void* tsan_caller_ = nullptr;
};

}  // namespace atl

#endif  // ATOLL_SIMULATE_FIBER_H_
