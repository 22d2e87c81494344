#include "tests/integration/process.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "common/file.h"

namespace atl {

absl::StatusOr<std::unique_ptr<Process>> Process::Start(const std::vector<std::string>& arguments,
                                                        const std::string& log_path) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const int log = open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (log < 0) return absl::InternalError(absl::StrFormat("cannot open %s: %s", log_path, strerror(errno)));
  const pid_t pid = fork();
  if (pid < 0) return absl::InternalError("cannot fork");
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    const int null = open("/dev/null", O_RDONLY);
    dup2(null, STDIN_FILENO);
    execvp(argv[0], argv.data());
    _exit(127);
  }
  close(log);
  return std::unique_ptr<Process>(new Process(pid));
}

Process::~Process() { Kill(); }

bool Process::Reap(int flags) {
  if (exit_code_.has_value()) return true;
  int status = 0;
  if (waitpid(pid_, &status, flags) != pid_) return false;
  exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return true;
}

bool Process::running() { return !Reap(WNOHANG); }

void Process::Signal(int signal) {
  if (running()) kill(pid_, signal);
}

void Process::Kill() {
  Signal(SIGKILL);
  Signal(SIGCONT);
  Reap(0);
}

std::optional<int> Process::Wait(Duration timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (!Reap(WNOHANG)) {
    if (std::chrono::steady_clock::now() > deadline) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return exit_code_;
}

Finished RunToEnd(const std::vector<std::string>& arguments, Duration timeout) {
  char path[] = "/tmp/atoll-output-XXXXXX";
  const int fd = mkstemp(path);
  if (fd >= 0) close(fd);
  Finished finished;
  auto process = Process::Start(arguments, path);
  if (process.ok()) finished.exit_code = (*process)->Wait(timeout).value_or(-1);
  finished.output = ReadFile(path).value_or("");
  unlink(path);
  return finished;
}

}  // namespace atl
