#include "common/process_setup.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

namespace atl {
namespace {

void OpenIfClosed(int descriptor, int flags) {
  if (::fcntl(descriptor, F_GETFD) >= 0 || errno != EBADF) return;
  // open() returns the lowest number that is free, and all below this one are in use.
  [[maybe_unused]] const int opened = ::open("/dev/null", flags);
}

}  // namespace

size_t RaiseFileLimit() {
  // Limit that a program can afford if it watches each descriptor. Systems allow a thousand times more.
  constexpr rlim_t kEnough = 65536;
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
  const rlim_t most = std::min(limit.rlim_max, kEnough);
  if (limit.rlim_cur >= most) return static_cast<size_t>(std::min(limit.rlim_cur, kEnough));
  limit.rlim_cur = most;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return static_cast<size_t>(std::min(limit.rlim_cur, kEnough));
}

void SetUpProcess() {
  OpenIfClosed(STDIN_FILENO, O_RDONLY);
  OpenIfClosed(STDOUT_FILENO, O_RDONLY);
  OpenIfClosed(STDERR_FILENO, O_RDWR);
  std::signal(SIGXFSZ, SIG_IGN);
  // Some daemons, and a shell's trap, leave it ignored, also across exec: then nobody learns how a child
  // ended.
  std::signal(SIGCHLD, SIG_DFL);
}

}  // namespace atl
