#include "worker/island/rank_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/errno.h"

namespace atl {
namespace {

sigset_t StopSignals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&signals, signal);
  return signals;
}

/// In the child, between fork and exec: only calls that are safe there.
[[noreturn]] void Become(pid_t parent, int log, char* const* arguments, char* const* environment) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(1);  // the supervisor has ended meanwhile
  // Of the terminal's signals only the supervisor's come, which forwards them: a second one would end a rank.
  ::setpgid(0, 0);
  ::signal(SIGPIPE, SIG_DFL);
  ::dup2(log, STDERR_FILENO);
  ::execve("/proc/self/exe", arguments, environment);
  ::_exit(127);
}

}  // namespace

void AcceptStopSignals() {
  const sigset_t signals = StopSignals();
  ::pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

bool RankEnd::WasOrdered() const {
  return by_signal && (code == SIGTERM || code == SIGINT || code == SIGHUP);
}

std::string RankEnd::Text() const {
  if (!by_signal) return absl::StrFormat("ended with exit code %d", code);
  return absl::StrFormat("killed by signal %d (%s)", code, ::strsignal(code));
}

absl::StatusOr<RankProcess> RankProcess::Start(uint32_t rank, char* const* arguments,
                                               const std::vector<std::string>& environment) {
  std::array<int, 2> pipe = {};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return ErrnoToStatus(errno, "making a pipe for a rank's log");
  FileDescriptor reads(pipe[0]);
  const FileDescriptor writes(pipe[1]);
  ::fcntl(reads.get(), F_SETFL, O_NONBLOCK);
  std::vector<char*> variables;
  for (const std::string& variable : environment) variables.push_back(const_cast<char*>(variable.c_str()));
  variables.push_back(nullptr);
  const pid_t parent = ::getpid();
  // Blocked before the fork: until exec the child has our handlers, and after it none for a second or more,
  // in which it loads LibTorch. A blocked signal waits, also across exec.
  const sigset_t signals = StopSignals();
  sigset_t before;
  ::pthread_sigmask(SIG_BLOCK, &signals, &before);
  const pid_t child = ::fork();
  const int error = errno;
  if (child == 0) Become(parent, writes.get(), arguments, variables.data());
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (child < 0) return ErrnoToStatus(error, absl::StrCat("starting rank ", rank));
  return RankProcess(rank, child, std::move(reads));
}

void RankProcess::Print(const std::string& line, const Logger& log, LineWriter& lines) const {
  if (line.empty()) return;
  const bool is_ours =
      line.find(" rank=") != std::string::npos || line.find("\"rank\":") != std::string::npos;
  if (!is_ours) {
    log.Info(line, {{"rank", rank_}});
    return;
  }
  lines.AwaitWritten(lines.Add(line + "\n", /*important=*/false));
}

void RankProcess::ForwardLog(const Logger& log, LineWriter& lines, bool all) {
  std::array<char, 65536> bytes;
  while (true) {
    const ssize_t read = ::read(log_.get(), bytes.data(), bytes.size());
    if (read < 0 && errno == EINTR) continue;
    if (read <= 0) break;
    unfinished_.append(bytes.data(), static_cast<size_t>(read));
    size_t begin = 0;
    for (size_t end = unfinished_.find('\n'); end != std::string::npos; end = unfinished_.find('\n', begin)) {
      Print(unfinished_.substr(begin, end - begin), log, lines);
      begin = end + 1;
    }
    unfinished_.erase(0, begin);
  }
  if (all) Print(std::exchange(unfinished_, ""), log, lines);
}

bool RankProcess::CheckEnd() {
  if (end_.has_value()) return false;
  int status = 0;
  if (::waitpid(process_, &status, WNOHANG) != process_) return false;
  end_ = WIFSIGNALED(status) ? RankEnd{.by_signal = true, .code = WTERMSIG(status)}
                             : RankEnd{.by_signal = false, .code = WEXITSTATUS(status)};
  return true;
}

void RankProcess::Signal(int signal) const {
  if (running()) ::kill(process_, signal);
}

}  // namespace atl
