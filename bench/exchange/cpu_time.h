#ifndef ATOLL_BENCH_EXCHANGE_CPU_TIME_H_
#define ATOLL_BENCH_EXCHANGE_CPU_TIME_H_

#include <sys/types.h>
#include <time.h>

namespace atl {

/// Processor seconds that a process of ours has used so far, all its threads, user and kernel; 0: there is no
/// such process. Where processors are shared with others this is steadier than the time that passes.
inline double CpuSeconds(pid_t pid) {
  clockid_t clock;
  struct timespec used;
  if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &used) != 0) return 0;
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

}  // namespace atl

#endif  // ATOLL_BENCH_EXCHANGE_CPU_TIME_H_
