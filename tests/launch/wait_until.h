#ifndef ATOLL_TESTS_LAUNCH_WAIT_UNTIL_H_
#define ATOLL_TESTS_LAUNCH_WAIT_UNTIL_H_

#include <signal.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "common/file.h"

namespace atl {

/// Looks every 2 ms until `done`, at most 20 s: for what another process does and does not announce.
inline bool WaitUntil(const std::function<bool()>& done) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!done()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

/// No such process, or only its remains, for whoever inherited it to collect.
inline bool Gone(pid_t pid) {
  if (::kill(pid, 0) != 0) return true;
  const std::string stat = ReadFile("/proc/" + std::to_string(pid) + "/stat").value_or("");
  return stat.find(") Z ") != std::string::npos || stat.find(") X ") != std::string::npos;
}

}  // namespace atl

#endif  // ATOLL_TESTS_LAUNCH_WAIT_UNTIL_H_
