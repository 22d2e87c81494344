#include "cli/output.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <iostream>
#include <string>
#include <system_error>

namespace atl {
namespace {

bool IsPipe(int fd) {
  struct stat info {};
  return ::fstat(fd, &info) == 0 && (S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode));
}

/// Ends the process when standard output has no reader; returns when `stop` can be read.
void Watch(int stop) {
  pollfd fds[2] = {{.fd = STDOUT_FILENO, .events = 0, .revents = 0},
                   {.fd = stop, .events = POLLIN, .revents = 0}};
  while (true) {
    if (::poll(fds, 2, -1) < 0) {
      if (errno == EINTR) continue;
      return;
    }
    if (fds[1].revents != 0) return;
    if ((fds[0].revents & (POLLERR | POLLHUP)) == 0) return;
    // The parent process or common/shutdown.h may ignore it.
    ::signal(SIGPIPE, SIG_DFL);
    ::kill(::getpid(), SIGPIPE);
    ::_exit(128 + SIGPIPE);  // where it is blocked
  }
}

}  // namespace

EndWithReader::EndWithReader() {
  if (!IsPipe(STDOUT_FILENO)) return;
  stop_ = FileDescriptor(::eventfd(0, EFD_CLOEXEC));
  if (stop_.valid()) thread_ = std::thread([fd = stop_.get()] { Watch(fd); });
}

EndWithReader::~EndWithReader() {
  if (!thread_.joinable()) return;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(stop_.get(), &one, sizeof(one));
  thread_.join();
}

}  // namespace atl
