#include "common/line_writer.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

namespace atl {
namespace {

std::atomic<uint64_t> dropped_in_process{0};

// Blocks for as long as the reader does. False: the descriptor takes nothing any more, or the disk is full.
bool WriteAll(int fd, const std::string& text) {
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t wrote = ::write(fd, text.data() + done, text.size() - done);
    if (wrote > 0) {
      done += static_cast<size_t>(wrote);
    } else if (wrote < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      pollfd ready{
          .fd = fd, .events = POLLOUT, .revents = 0};  // the descriptor's flags belong to who opened it
      ::poll(&ready, 1, -1);
    } else if (wrote == 0 || errno != EINTR) {
      return false;
    }
  }
  return true;
}

}  // namespace

struct LineWriter::State {
  explicit State(const Options& chosen) : options(chosen) {}
  ~State() {
    if (options.owns_fd) ::close(options.fd);
  }

  void Drop() {
    if (dropped++ == 0) first_dropped = std::chrono::steady_clock::now();
    dropped_in_process.fetch_add(1, std::memory_order_relaxed);
  }
  // The line about dropped lines, once there are some and the queue has been written; else the next line.
  // Empty: none.
  std::string Next();
  void Run();

  const Options options;
  std::mutex mutex;
  std::condition_variable added, wrote;
  std::deque<std::string> lines;
  size_t bytes = 0;         // in `lines`
  uint64_t last_added = 0;  // numbers of lines
  uint64_t last_done = 0;   // written, or given up by the descriptor
  bool busy = false;        // a write is going on, outside of the mutex
  bool stalled = false;     // a caller lost its patience, and the queue has not been empty since
  bool closing = false;
  uint64_t dropped = 0;  // not yet said
  std::chrono::steady_clock::time_point first_dropped;
};

std::string LineWriter::State::Next() {
  if (!lines.empty()) {
    std::string line = std::move(lines.front());
    lines.pop_front();
    bytes -= line.size();
    return line;
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - first_dropped).count();
  const uint64_t count = std::exchange(dropped, 0);
  return !options.dropped_text ? "" : options.dropped_text(count, seconds);
}

void LineWriter::State::Run() {
  std::unique_lock lock(mutex);
  while (true) {
    added.wait(lock, [this] { return closing || !lines.empty() || dropped > 0; });
    if (lines.empty() && dropped == 0) return;
    const bool counts = !lines.empty();
    const std::string line = Next();
    busy = true;
    lock.unlock();
    const bool whole = WriteAll(options.fd, line);
    lock.lock();
    busy = false;
    if (counts) {
      ++last_done;
      // Not Drop(): a descriptor that takes nothing would get a line about it after every line.
      if (!whole) dropped_in_process.fetch_add(1, std::memory_order_relaxed);
    }
    if (lines.empty() && dropped == 0) stalled = false;
    wrote.notify_all();
  }
}

LineWriter::LineWriter(const Options& options) : state_(std::make_shared<State>(options)) {
  // The program's signals are for its own threads.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread([state = state_] {
    ::pthread_setname_np(::pthread_self(), "log");
    state->Run();
  }).detach();
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

LineWriter::~LineWriter() {
  Flush();
  const std::lock_guard lock(state_->mutex);
  state_->closing = true;
  state_->added.notify_all();
}

uint64_t LineWriter::Add(std::string line, bool important) {
  const std::lock_guard lock(state_->mutex);
  const size_t bound = state_->options.max_bytes + (important ? state_->options.reserve_bytes : 0);
  if (state_->bytes + line.size() > bound) {
    state_->Drop();
    return 0;
  }
  state_->bytes += line.size();
  state_->lines.push_back(std::move(line));
  state_->added.notify_one();
  return ++state_->last_added;
}

void LineWriter::AwaitWritten(uint64_t number) {
  std::unique_lock lock(state_->mutex);
  const auto settled = [&] { return state_->stalled || state_->last_done >= number; };
  if (!state_->wrote.wait_for(lock, state_->options.patience, settled)) {
    state_->stalled = true;
    state_->wrote.notify_all();  // the others have waited long enough too
  }
}

bool LineWriter::Flush() {
  std::unique_lock lock(state_->mutex);
  const auto empty = [this] { return state_->lines.empty() && state_->dropped == 0 && !state_->busy; };
  return state_->wrote.wait_for(lock, state_->options.flush_limit, empty);
}

uint64_t DroppedLogLines() { return dropped_in_process.load(std::memory_order_relaxed); }

}  // namespace atl
