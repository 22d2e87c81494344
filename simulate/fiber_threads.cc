// common/thread.h, common/mutex.h and the clocks on fibers (simulate/fiber_scheduler.h). A caller that is no
// fiber, before or after a run, has locks and nothing to wait for: it is alone.

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "common/clock.h"
#include "common/mutex.h"
#include "common/thread.h"
#include "simulate/fiber_core.h"

namespace atl {
namespace {

using Core = FiberScheduler::Core;

// 2026-01-01, where virtual wall clocks begin, less FiberScheduler::Options::start.
constexpr Duration kWallClockAhead = Seconds(1767225600.0 - 1000000.0);

MonoTime last = MonoTime(Seconds(1000000));  // outside a run, what its clock showed

Core& Here(const char* what) {
  Core* const core = Core::Current();
  if (core == nullptr) {
    std::fprintf(stderr, "simulate: %s outside of FiberScheduler::Run\n", what);
    std::abort();
  }
  return *core;
}

}  // namespace

MonoTime SteadyNow() {
  if (const Core* const core = Core::Current(); core != nullptr) last = core->now();
  return last;
}

WallTime SystemNow() { return WallTime(SteadyNow().time_since_epoch() + kWallClockAhead); }

void Mutex::Lock() {
  Core* const core = Core::Current();
  if (core == nullptr) return mutex_.lock();
  core->MayYield();
  // Its other holders are fibers of this thread, which a blocked thread would never resume.
  while (!mutex_.try_lock()) (void)core->Await(this, "a lock", std::nullopt);
}

void Mutex::Unlock() {
  mutex_.unlock();
  if (Core* const core = Core::Current(); core != nullptr) core->WakeOne(this);
}

void CondVar::Wait(Mutex* mutex) {
  Core& core = Here("a wait");
  mutex->Unlock();
  (void)core.Await(this, "a condition", std::nullopt);
  mutex->Lock();
}

bool CondVar::WaitUntil(Mutex* mutex, MonoTime deadline) {
  Core& core = Here("a wait");
  mutex->Unlock();
  const bool woken = core.Await(this, "a condition, or time", deadline);
  mutex->Lock();
  return woken;
}

void CondVar::NotifyOne() {
  if (Core* const core = Core::Current(); core != nullptr) core->WakeOne(this);
}

void CondVar::NotifyAll() {
  if (Core* const core = Core::Current(); core != nullptr) core->WakeAll(this);
}

class Thread::Body {
 public:
  explicit Body(std::function<void()> run) : id_(Here("a thread").Start(std::move(run))) {}
  uint64_t id() const { return id_; }

 private:
  const uint64_t id_;
};

Thread::Thread() = default;
Thread::Thread(std::function<void()> run) : body_(std::make_unique<Body>(std::move(run))) {}
Thread::~Thread() {
  if (body_ != nullptr) std::abort();  // as std::thread
}
Thread::Thread(Thread&& other) noexcept = default;
Thread& Thread::operator=(Thread&& other) noexcept = default;

bool Thread::joinable() const { return body_ != nullptr; }

void Thread::Join() {
  Here("a join").Join(body_->id());
  body_.reset();
}

uint64_t CurrentThreadId() {
  const Core* const core = Core::Current();
  return core == nullptr ? UINT64_MAX : core->running();
}

void SleepThisThread(Duration duration) {
  Core& core = Here("a sleep");
  const char key = 0;  // its own: nobody wakes it
  (void)core.Await(&key, "time", core.now() + duration);
}

void SetThreadName(const std::string& name) {
  if (Core* const core = Core::Current(); core != nullptr) core->SetName(name);
}

void LowerThreadPriority() {}

const void*& ThreadTraceSlot() {
  static const void* outside = nullptr;
  Core* const core = Core::Current();
  return core == nullptr ? outside : core->trace_slot();
}

}  // namespace atl
