#include "client/library/engine_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <thread>

#include "client/ipc/status_page.h"
#include "client/library/find_engine.h"

extern char** environ;

namespace atl::library {
namespace {

using Milliseconds = std::chrono::milliseconds;

/// How often a wait looks whether the engine still runs: a forked child of this process may hold its end of
/// the socket open.
constexpr Milliseconds kLook{200};
constexpr Milliseconds kGreetWait{10'000};
constexpr int kAboveTheEngines = 32;  // descriptors that the engine's own numbers cannot meet
constexpr size_t kLastWords = 2000;
constexpr double kLongest = 1e9;  // of a timeout, in seconds

Result NoResource(const char* what) {
  return Failure(ATL_RESOURCE_EXHAUSTED,
                 Text("cannot make %s for the engine: %s", what, std::strerror(errno)));
}

/// Both ends are closed on exec, and above the standard streams: a warning that any library of this process
/// writes to a standard error that was closed must not become a message.
bool MakeSockets(int (&ends)[2]) {
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return false;
  if (std::min(ends[0], ends[1]) > STDERR_FILENO) return true;
  // These hold their numbers until others are made.
  const int low[2] = {ends[0], ends[1]};
  const bool made = MakeSockets(ends);
  const int reason = errno;
  for (const int descriptor : low) ::close(descriptor);
  errno = reason;
  return made;
}

/// A copy that is closed on exec and has a high number.
int High(int descriptor) { return ::fcntl(descriptor, F_DUPFD_CLOEXEC, kAboveTheEngines); }

/// The last line of a file that has text.
std::string LastLine(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return "";
  const off_t size = ::lseek(file, 0, SEEK_END);
  std::string text(kLastWords, '\0');
  const off_t from = std::max<off_t>(0, size - static_cast<off_t>(kLastWords));
  const ssize_t got = ::pread(file, text.data(), text.size(), from);
  ::close(file);
  text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const size_t line = text.rfind('\n');
  return line == std::string::npos ? text : text.substr(line + 1);
}

/// What posix_spawn is told, freed with this.
class SpawnPlan {
 public:
  SpawnPlan() {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawnattr_init(&attributes_);
    sigset_t none;
    sigset_t all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnPlan() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
    for (const int descriptor : sources_) ::close(descriptor);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  /// The program gets `descriptor` as number `number`. False: there are no more descriptors.
  bool Give(int descriptor, int number) {
    const int source = High(descriptor);
    if (source < 0) return false;
    sources_.push_back(source);
    return ::posix_spawn_file_actions_adddup2(&actions_, source, number) == 0;
  }
  /// Its standard input is empty, and everything from `first` on is closed.
  void CloseRest(int first) {
    ::posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_addclosefrom_np(&actions_, first);
  }
  /// An errno.
  int Spawn(const std::string& path, pid_t& pid) {
    std::string name = "atoll-engine";
    char* const arguments[] = {name.data(), nullptr};
    return ::posix_spawn(&pid, path.c_str(), &actions_, &attributes_, arguments, environ);
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
  std::vector<int> sources_;
};

}  // namespace

Milliseconds TimeoutOf(double seconds) {
  if (seconds < 0 || std::isnan(seconds)) return Milliseconds(-1);
  return Milliseconds(static_cast<int64_t>(std::min(seconds, kLongest) * 1000 + 0.999));
}

EngineProcess::EngineProcess(std::string path, std::string log_file)
    : path_(std::move(path)), log_file_(std::move(log_file)), parent_(::getpid()) {}

Result EngineProcess::Start(const std::vector<ipc::Option>& options, std::unique_ptr<EngineProcess>& engine) {
  std::string path;
  Result found = FindEngine(options, path);
  if (!found.ok()) return found;
  engine.reset(new EngineProcess(path, ValueOf(options, "log-file")));
  if (!engine->values_.Create("atoll-values")) return NoResource("shared memory");
  if (!engine->state_.Create("atoll-state")) return NoResource("shared memory");
  if (!engine->status_.Create("atoll-status") || !engine->status_.Grow(ipc::kStatusPageBytes))
    return NoResource("shared memory");
  return engine->Spawn();
}

Result EngineProcess::Spawn() {
  int ends[2] = {-1, -1};
  if (!MakeSockets(ends)) return NoResource("a socket");
  socket_ = std::make_unique<ipc::MessageSocket>(ends[0]);
  SpawnPlan plan;
  const bool given = plan.Give(ends[1], ipc::kSocketDescriptor) &&
                     plan.Give(values_.descriptor(), ipc::kValuesDescriptor) &&
                     plan.Give(state_.descriptor(), ipc::kStateDescriptor) &&
                     plan.Give(status_.descriptor(), ipc::kStatusDescriptor);
  ::close(ends[1]);
  if (!given) return NoResource("descriptors");
  if (!log_file_.empty()) {
    const int log = ::open(log_file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    const bool opened = log >= 0 && plan.Give(log, STDERR_FILENO);
    const int reason = errno;
    if (log >= 0) ::close(log);
    if (!opened) {
      return Failure(ATL_INVALID_ARGUMENT,
                     Text("log-file: cannot append to '%s': %s", log_file_.c_str(), std::strerror(reason)));
    }
  }
  plan.CloseRest(ipc::kFirstFreeDescriptor);
  const int failed = plan.Spawn(path_, pid_);
  if (failed == 0) return {};
  pid_ = -1;
  return Failure(ATL_NOT_FOUND,
                 Text("cannot start the engine '%s': %s", path_.c_str(), std::strerror(failed)));
}

EngineProcess::~EngineProcess() {
  if (pid_ >= 0 && ::getpid() == parent_) Kill();
}

void EngineProcess::Kill() {
  {
    // Under the lock nobody reaps it, so the number is still its own.
    const std::lock_guard<std::mutex> lock(mutex_);
    if (ended_) return;
    ::kill(pid_, SIGKILL);
  }
  AwaitEnd(Milliseconds(-1));
}

Result EngineProcess::Greet(const ipc::Hello& hello) {
  const std::string body = ipc::Encode(hello);
  if (body.size() > ipc::kMaxMessage) {
    return Failure(ATL_INVALID_ARGUMENT,
                   Text("the options and tensors have %zu bytes, at most %u are allowed", body.size(),
                        ipc::kMaxMessage));
  }
  // An engine that has ended, or does not read, is found by the wait for what it says next.
  static_cast<void>(Send(ipc::MessageType::kHello, body, kGreetWait));
  return {};
}

bool EngineProcess::Ended() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (ended_) return true;
  int status = 0;
  const pid_t reaped = ::waitpid(pid_, &status, WNOHANG);
  if (reaped == 0 || (reaped < 0 && errno != ECHILD)) return false;
  ended_ = true;
  if (reaped < 0) {
    how_ = "ended; this process took its exit code elsewhere";
  } else if (WIFSIGNALED(status)) {
    how_ = Text("was ended by signal %d (%s)", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
  } else {
    how_ = Text("ended with exit code %d", WEXITSTATUS(status));
  }
  return true;
}

bool EngineProcess::AwaitEnd(Milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (!Ended()) {
    if (timeout.count() >= 0 && std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(Milliseconds(5));
  }
  return true;
}

std::string EngineProcess::Obituary() {
  // The socket closes a moment before the process can be reaped.
  const bool ended = AwaitEnd(Milliseconds(2000));
  std::string text = Text("the engine '%s' (process %d) %s", path_.c_str(), static_cast<int>(pid_),
                          ended ? how_.c_str() : "closed its connection");
  if (!heard_)
    text += ", before it said anything: check that this is atoll-engine, and run it with --version";
  if (log_file_.empty()) return text + "; what it logged is on standard error";
  text += "; its log is " + log_file_;
  const std::string last = LastLine(log_file_);
  return last.empty() ? text : text + ", which ends: " + last;
}

Result EngineProcess::Receive(Milliseconds timeout, ipc::MessageType& type, std::string& body) {
  const bool forever = timeout.count() < 0;
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  bool ended = false;
  while (true) {
    const auto left = std::chrono::ceil<Milliseconds>(deadline - std::chrono::steady_clock::now());
    const Milliseconds wait = forever ? kLook : std::clamp(left, Milliseconds(0), kLook);
    const ipc::Received received = socket_->Receive(wait, type, body);
    if (received == ipc::Received::kMessage) {
      heard_ = true;
      return {};
    }
    if (received == ipc::Received::kInvalid)
      return Failure(ATL_INTERNAL, "the engine said something that this library does not understand");
    if (received == ipc::Received::kClosed || ended) return Failure(ATL_INTERNAL, Obituary());
    // Once more after its end: its last message may have come just before.
    ended = Ended();
    if (ended) continue;
    if (!forever && std::chrono::steady_clock::now() >= deadline)
      return Failure(ATL_DEADLINE_EXCEEDED, "no event yet");
  }
}

}  // namespace atl::library
