#include "simulate/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#define ATOLL_ASAN_FIBERS
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ATOLL_ASAN_FIBERS
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define ATOLL_TSAN_FIBERS
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ATOLL_TSAN_FIBERS
#endif
#endif

#ifdef ATOLL_ASAN_FIBERS
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/lsan_interface.h>
#endif
#ifdef ATOLL_TSAN_FIBERS
#include <sanitizer/tsan_interface.h>
#endif

namespace atl {
namespace {

[[noreturn]] void Die(const char* what) {
  std::perror(what);
  std::abort();
}

}  // namespace

FiberStack::FiberStack(size_t bytes) : bytes_(bytes) {
  const size_t guard = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  void* const memory = ::mmap(nullptr, bytes + guard, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) Die("memory for the stack of a fiber");
  if (::mprotect(memory, guard, PROT_NONE) != 0) Die("the guard page of a fiber");
  bottom_ = static_cast<std::byte*>(memory) + guard;
#ifdef ATOLL_ASAN_FIBERS
  // An abandoned fiber owns what its stack points to.
  __lsan_register_root_region(bottom_, bytes);
#endif
}

FiberStack::~FiberStack() {
  if (bottom_ == nullptr) return;
#ifdef ATOLL_ASAN_FIBERS
  __lsan_unregister_root_region(bottom_, bytes_);
#endif
  const size_t guard = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  ::munmap(bottom_ - guard, bytes_ + guard);
}

FiberStack::FiberStack(FiberStack&& other) noexcept
    : bottom_(std::exchange(other.bottom_, nullptr)), bytes_(other.bytes_) {}

Fiber::Fiber(FiberStack stack, std::function<void()> run) : stack_(std::move(stack)), run_(std::move(run)) {
  ::getcontext(&own_);
  own_.uc_stack.ss_sp = stack_.bottom();
  own_.uc_stack.ss_size = stack_.bytes();
  own_.uc_link = nullptr;
  // makecontext passes ints only.
  const auto self = reinterpret_cast<uintptr_t>(this);
  ::makecontext(&own_, reinterpret_cast<void (*)()>(&Fiber::Enter), 2, static_cast<uint32_t>(self >> 32),
                static_cast<uint32_t>(self));
#ifdef ATOLL_TSAN_FIBERS
  tsan_own_ = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
#ifdef ATOLL_TSAN_FIBERS
  __tsan_destroy_fiber(tsan_own_);
#endif
}

#if defined(ATOLL_ASAN_FIBERS) || defined(ATOLL_TSAN_FIBERS)
// The sanitizers follow swapcontext; they take a jump for one within a stack.
void Fiber::SwitchIn() { ::swapcontext(&caller_, &own_); }
void Fiber::SwitchOut() { ::swapcontext(&own_, &caller_); }
#else
// swapcontext makes a system call for the signal mask, which is the same on all fibers: a fifth of a
// simulation's time.
void Fiber::SwitchIn() {
  if (_setjmp(caller_place_) != 0) return;
  if (entered_) ::_longjmp(own_place_, 1);
  entered_ = true;
  ::setcontext(&own_);
}
void Fiber::SwitchOut() {
  if (_setjmp(own_place_) == 0) ::_longjmp(caller_place_, 1);
}
#endif

void Fiber::Resume() {
#ifdef ATOLL_TSAN_FIBERS
  tsan_caller_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(tsan_own_, 0);
#endif
#ifdef ATOLL_ASAN_FIBERS
  void* callers_fake_stack = nullptr;
  __sanitizer_start_switch_fiber(&callers_fake_stack, stack_.bottom(), stack_.bytes());
#endif
  SwitchIn();
#ifdef ATOLL_ASAN_FIBERS
  __sanitizer_finish_switch_fiber(callers_fake_stack, nullptr, nullptr);
#endif
}

void Fiber::GiveWay() {
#ifdef ATOLL_TSAN_FIBERS
  __tsan_switch_to_fiber(tsan_caller_, 0);
#endif
#ifdef ATOLL_ASAN_FIBERS
  // An ended fiber gives its fake stack up.
  __sanitizer_start_switch_fiber(ended_ ? nullptr : &fake_stack_, caller_stack_, caller_stack_bytes_);
#endif
  SwitchOut();
#ifdef ATOLL_ASAN_FIBERS
  __sanitizer_finish_switch_fiber(fake_stack_, &caller_stack_, &caller_stack_bytes_);
#endif
}

void Fiber::Enter(uint32_t high, uint32_t low) {
  reinterpret_cast<Fiber*>(static_cast<uintptr_t>(high) << 32 | low)->Main();
}

void Fiber::Main() {
#ifdef ATOLL_ASAN_FIBERS
  __sanitizer_finish_switch_fiber(nullptr, &caller_stack_, &caller_stack_bytes_);
#endif
  run_();
  run_ = nullptr;  // its captures are destroyed on the stack that used them
  ended_ = true;
  GiveWay();
  std::abort();  // an ended fiber is not resumed
}

}  // namespace atl
