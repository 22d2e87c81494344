#include "common/thread_check.h"

#include <latch>
#include <thread>
#include <vector>

#include "absl/strings/str_format.h"

namespace atl {

absl::Status NoThread(const std::system_error& error) {
  return absl::ResourceExhaustedError(absl::StrFormat(
      "a thread cannot be started: %s (raise the limit of processes and threads: ulimit -u, pids.max of the "
      "cgroup, TasksMax of the service; or that of address space, ulimit -v)",
      error.code().message()));
}

absl::Status CheckThreads(size_t count) {
  std::latch all_tried(1);
  std::vector<std::thread> threads;
  threads.reserve(count);
  absl::Status status;
  try {
    for (size_t i = 0; i < count; ++i) threads.emplace_back([&all_tried] { all_tried.wait(); });
  } catch (const std::system_error& error) {
    status = NoThread(error);
  }
  all_tried.count_down();
  for (std::thread& thread : threads) thread.join();
  return status;
}

}  // namespace atl
