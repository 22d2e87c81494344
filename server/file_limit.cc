#include "server/file_limit.h"

#include <sys/resource.h>

#include <algorithm>

namespace atoll {

size_t RaiseFileLimit() {
  // What a program that watches its descriptors one by one can still afford; systems allow a thousand times
  // more.
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

size_t ConnectionsWithin(size_t wanted, size_t file_limit) {
  const size_t left = file_limit > kReservedDescriptors ? (file_limit - kReservedDescriptors) / 2 : 0;
  return std::max<size_t>(16, std::min(wanted, left));
}

}  // namespace atoll
