#include "common/shutdown.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "common/errno.h"
#include "common/exit_codes.h"
#include "common/file_descriptor.h"
#include "common/mutex.h"
#include "common/task_queue.h"

namespace atl {
namespace {

// State of the signal handler, which may use only lock-free atomics and write(2). It is global because
// handlers belong to the process.
std::atomic<int> g_event_fd{-1};
std::atomic<int> g_signal{0};
std::atomic<pid_t> g_repeater{0};       // 0: none
std::atomic<int64_t> g_first_ms{0};     // when g_signal came
constexpr int64_t kSameSignalMs = 500;  // nobody presses Ctrl-C twice in this time to mean something else
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<int64_t>::is_always_lock_free);

int64_t NowMs() {
  timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000;
}

/// Whether `number`, after g_signal, is an order to end at once.
bool EndsAtOnce(int number) {
  // A logout sends SIGHUP twice, from the shell and from the kernel; systemd sends it after SIGTERM.
  if (number == SIGHUP || ::getppid() == g_repeater.load()) return false;
  // timeout(1) sends its signal to the program and then to the program's group.
  return number != g_signal.load() || NowMs() - g_first_ms.load() >= kSameSignalMs;
}

void HandleSignal(int number) {
  const int event_fd = g_event_fd.load();
  if (event_fd < 0) return;  // the program is ending, with an exit code of its own
  const int saved_errno = errno;
  // Before the exchange: a second signal may interrupt the handler behind it.
  if (g_signal.load() == 0) g_first_ms = NowMs();
  int none = 0;
  if (!g_signal.compare_exchange_strong(none, number)) {
    if (EndsAtOnce(number)) {
      constexpr std::string_view kSaid = "a second signal: ends at once\n";
      [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kSaid.data(), kSaid.size());
      ::_exit(ToInt(ExitCode::kInterrupted));
    }
    errno = saved_errno;
    return;
  }
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(event_fd, &one, sizeof(one));
  errno = saved_errno;
}

/// What `number` did before the first Shutdown of this process.
struct sigaction ActionOf(int number) {
  struct sigaction action = {};
  ::sigaction(number, nullptr, &action);
  if (action.sa_handler == &HandleSignal) action.sa_handler = SIG_DFL;
  return action;
}

}  // namespace

struct Shutdown::State {
  FileDescriptor event;
  struct sigaction old_term, old_int, old_hangup, old_pipe;

  mutable Mutex mutex;
  CondVar changed;
  bool requested ABSL_GUARDED_BY(mutex) = false;
  bool closing ABSL_GUARDED_BY(mutex) = false;
  std::vector<std::function<void()>> callbacks ABSL_GUARDED_BY(mutex);
};

Shutdown::Shutdown() : state_(std::make_unique<State>()) {}

absl::StatusOr<std::unique_ptr<Shutdown>> Shutdown::Install(std::optional<pid_t> repeater) {
  FileDescriptor event(::eventfd(0, EFD_CLOEXEC));
  if (!event.valid()) return ErrnoToStatus(errno, "make an eventfd for signals");
  int none = -1;
  if (!g_event_fd.compare_exchange_strong(none, event.get())) {
    return absl::FailedPreconditionError("signal handlers are already installed in this process");
  }
  g_signal = 0;
  g_repeater = repeater.value_or(0);
  std::unique_ptr<Shutdown> shutdown(new Shutdown());
  shutdown->state_->event = std::move(event);
  struct sigaction action = {};
  action.sa_handler = &HandleSignal;
  action.sa_flags = SA_RESTART;
  shutdown->state_->old_term = ActionOf(SIGTERM);
  shutdown->state_->old_int = ActionOf(SIGINT);
  shutdown->state_->old_hangup = ActionOf(SIGHUP);
  ::sigaction(SIGTERM, &action, nullptr);
  ::sigaction(SIGINT, &action, nullptr);
  const bool outlives_terminal = shutdown->state_->old_hangup.sa_handler == SIG_IGN;  // nohup
  if (!outlives_terminal) ::sigaction(SIGHUP, &action, nullptr);
  action.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &action, &shutdown->state_->old_pipe);
  shutdown->watcher_ = std::thread([raw = shutdown.get()] { raw->Watch(); });
  return shutdown;
}

Shutdown::~Shutdown() {
  {
    MutexLock lock(&state_->mutex);
    state_->closing = true;
    state_->changed.NotifyAll();
  }
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(state_->event.get(), &one, sizeof(one));
  if (watcher_.joinable()) watcher_.join();  // not when no thread could be started
  g_event_fd = -1;
  ::sigaction(SIGPIPE, &state_->old_pipe, nullptr);
  if (g_signal.load() != 0) return;
  ::sigaction(SIGTERM, &state_->old_term, nullptr);
  ::sigaction(SIGINT, &state_->old_int, nullptr);
  ::sigaction(SIGHUP, &state_->old_hangup, nullptr);
}

// The event counts signals, requests and new callbacks alike; each makes this thread look again.
void Shutdown::Watch() {
  SetThreadName("shutdown");
  while (true) {
    uint64_t count = 0;
    if (::read(state_->event.get(), &count, sizeof(count)) < 0 && errno == EINTR) continue;
    std::vector<std::function<void()>> due;
    {
      MutexLock lock(&state_->mutex);
      if (state_->closing) return;
      if (g_signal.load() != 0) state_->requested = true;
      if (!state_->requested) continue;
      due.swap(state_->callbacks);
      state_->changed.NotifyAll();
    }
    for (const auto& callback : due) callback();
  }
}

void Shutdown::Request() {
  {
    MutexLock lock(&state_->mutex);
    state_->requested = true;
    state_->changed.NotifyAll();
  }
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(state_->event.get(), &one, sizeof(one));
}

bool Shutdown::requested() const {
  if (g_signal.load() != 0) return true;
  MutexLock lock(&state_->mutex);
  return state_->requested;
}

int Shutdown::signal() const { return g_signal.load(); }

void Shutdown::Wait() {
  MutexLock lock(&state_->mutex);
  while (!state_->requested) state_->changed.Wait(&state_->mutex);
}

bool Shutdown::WaitFor(Duration timeout) {
  const MonoTime deadline = SteadyNow() + timeout;
  MutexLock lock(&state_->mutex);
  while (!state_->requested && SteadyNow() < deadline) {
    state_->changed.WaitUntil(&state_->mutex, deadline);
  }
  return state_->requested;
}

void Shutdown::OnRequest(std::function<void()> callback) {
  {
    MutexLock lock(&state_->mutex);
    state_->callbacks.push_back(std::move(callback));
  }
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(state_->event.get(), &one, sizeof(one));
}

}  // namespace atl
