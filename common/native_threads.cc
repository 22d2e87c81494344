// common/thread.h, common/mutex.h and SteadyNow on the machine's threads and clock. This is a separate
// library, so that a program can link another implementation instead.

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "common/clock.h"
#include "common/mutex.h"
#include "common/thread.h"

namespace atl {
namespace {

// On Linux each thread has its own nice value. This one gives a tenth of a normal share, and all idle time.
constexpr int kBackgroundNice = 10;
constexpr int kNicest = 19;

}  // namespace

MonoTime SteadyNow() { return std::chrono::steady_clock::now(); }
WallTime SystemNow() { return std::chrono::system_clock::now(); }

void Mutex::Lock() { mutex_.lock(); }
void Mutex::Unlock() { mutex_.unlock(); }

void CondVar::Wait(Mutex* mutex) {
  std::unique_lock<std::mutex> lock(mutex->mutex_, std::adopt_lock);
  condition_.wait(lock);
  lock.release();
}

bool CondVar::WaitUntil(Mutex* mutex, MonoTime deadline) {
  std::unique_lock<std::mutex> lock(mutex->mutex_, std::adopt_lock);
  const std::cv_status status = condition_.wait_until(lock, deadline);
  lock.release();
  return status == std::cv_status::no_timeout;
}

void CondVar::NotifyOne() { condition_.notify_one(); }
void CondVar::NotifyAll() { condition_.notify_all(); }

class Thread::Body {
 public:
  explicit Body(std::function<void()> run) : thread_(std::move(run)) {}
  std::thread& thread() { return thread_; }

 private:
  std::thread thread_;
};

Thread::Thread() = default;
Thread::Thread(std::function<void()> run) : body_(std::make_unique<Body>(std::move(run))) {}
Thread::~Thread() = default;
Thread::Thread(Thread&& other) noexcept = default;
Thread& Thread::operator=(Thread&& other) noexcept = default;

bool Thread::joinable() const { return body_ != nullptr; }

void Thread::Join() {
  body_->thread().join();
  body_.reset();
}

uint64_t CurrentThreadId() {
  static std::atomic<uint64_t> next{1};
  thread_local const uint64_t id = next++;
  return id;
}

void SleepThisThread(Duration duration) { std::this_thread::sleep_for(duration); }

void SetThreadName(const std::string& name) {
  ::pthread_setname_np(::pthread_self(), name.substr(0, 15).c_str());
}

void LowerThreadPriority() {
  // Ignore failures: the thread then only competes more.
  const int nice = std::min(kNicest, ::getpriority(PRIO_PROCESS, 0) + kBackgroundNice);
  (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), nice);
}

const void*& ThreadTraceSlot() {
  thread_local const void* slot = nullptr;
  return slot;
}

}  // namespace atl
