#include "server/launch/child_process.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "absl/strings/str_format.h"
#include "common/errno.h"
#include "common/status.h"

namespace atl {
namespace {

// What the child needs between vfork and exec: all made by the parent, because the child may neither allocate
// nor take a lock.
struct Plan {
  char* const* arguments;
  int input;
  int output;
  int failure;  // gets errno when the program cannot be run
  pid_t parent;
};

[[noreturn]] void BecomeProgram(const Plan& plan) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // Too late to be told when the parent died before the line above.
  if (::getppid() != plan.parent) ::_exit(127);
  // Handlers run in the parent's memory until exec; ignored signals would stay ignored after it.
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) ::sigaction(signal, &action, nullptr);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::dup2(plan.input, STDIN_FILENO);
  ::dup2(plan.output, STDOUT_FILENO);
  ::dup2(plan.output, STDERR_FILENO);
  // A worker that kept our listening socket would keep the port from our next life.
  ::close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
  ::execvp(plan.arguments[0], plan.arguments);
  const int error = errno;
  [[maybe_unused]] const ssize_t written = ::write(plan.failure, &error, sizeof(error));
  ::_exit(127);
}

// vfork, not fork: a coordinator has gigabytes of parameters, whose page tables fork would copy and whose
// pages would then be copied again while rounds are merged. posix_spawn cannot ask for the death signal.
pid_t Spawn(const Plan& plan) {
  const pid_t pid = ::vfork();
  if (pid == 0) BecomeProgram(plan);
  return pid;
}

pid_t SpawnWithSignalsBlocked(const Plan& plan) {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = Spawn(plan);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return pid;
}

/// errno of the exec that failed; 0 when the program runs.
int FailureOf(FileDescriptor read_end) {
  int error = 0;
  ssize_t got = 0;
  do {
    got = ::read(read_end.get(), &error, sizeof(error));
  } while (got < 0 && errno == EINTR);
  return got == sizeof(error) ? error : 0;
}

const char* MeaningOf(int code) {
  switch (code) {
    case 1:
      return " (internal error)";
    case 2:
      return " (command line or configuration)";
    case 3:
      return " (unavailable)";
    case 4:
      return " (state directory or disk)";
    case 5:
      return " (refused by the coordinator)";
    case 6:
      return " (token or model files)";
    case 7:
      return " (the model diverged)";
    case 130:
      return " (interrupted)";
    default:
      return "";
  }
}

}  // namespace

std::string Describe(const ProcessExit& exit) {
  if (exit.signal != 0) {
    const char* name = ::sigabbrev_np(exit.signal);
    return name != nullptr ? absl::StrFormat("killed by SIG%s", name)
                           : absl::StrFormat("killed by signal %d", exit.signal);
  }
  if (exit.code < 0) return "ended with an unknown exit code";
  return absl::StrFormat("exit code %d%s", exit.code, MeaningOf(exit.code));
}

absl::StatusOr<ChildProcess> ChildProcess::Start(const std::vector<std::string>& arguments,
                                                 const std::string& log_path) {
  if (arguments.empty()) return absl::InvalidArgumentError("no program to run");
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const FileDescriptor input(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!input.valid()) return ErrnoToStatus(errno, "open /dev/null");
  const FileDescriptor output(::open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!output.valid()) return ErrnoToStatus(errno, absl::StrFormat("open the log %s", log_path));
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return ErrnoToStatus(errno, "make a pipe");
  FileDescriptor read_end(ends[0]), write_end(ends[1]);

  const pid_t pid = SpawnWithSignalsBlocked({.arguments = argv.data(),
                                             .input = input.get(),
                                             .output = output.get(),
                                             .failure = write_end.get(),
                                             .parent = ::getpid()});
  if (pid < 0) return ErrnoToStatus(errno, absl::StrFormat("start a process for %s", arguments[0]));
  write_end.Reset();
  if (const int error = FailureOf(std::move(read_end)); error != 0) {
    ::waitpid(pid, nullptr, 0);
    return ErrnoToStatus(error, absl::StrFormat("run %s", arguments[0]));
  }
  // By number: glibc 2.36 declares pidfd_open without extern "C". Close-on-exec by itself.
  FileDescriptor pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd.valid()) {
    const int error = errno;
    ::kill(-pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    return ErrnoToStatus(error, absl::StrFormat("watch the process of %s", arguments[0]));
  }
  return ChildProcess(pid, std::move(pidfd));
}

void ChildProcess::Signal(int signal) const {
  if (pidfd_.valid()) ::kill(-pid_, signal);
}

std::optional<ProcessExit> ChildProcess::Reap() {
  if (!pidfd_.valid()) return std::nullopt;
  siginfo_t info = {};
  const auto id = static_cast<id_t>(pid_);
  if (::waitid(P_PID, id, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0) return std::nullopt;
  // Before its number is given back: until then no stranger's group can have it.
  ::kill(-pid_, SIGKILL);
  ProcessExit exit;
  info = {};
  if (::waitid(P_PID, id, &info, WEXITED) == 0) {
    if (info.si_code == CLD_EXITED) {
      exit.code = info.si_status;
    } else {
      exit.signal = info.si_status;
    }
  }
  pidfd_.Reset();
  return exit;
}

ChildProcess::~ChildProcess() {
  if (!pidfd_.valid()) return;
  Signal(SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

}  // namespace atl
