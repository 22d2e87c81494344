#ifndef ATOLL_COMMON_MEMORY_LIMIT_H_
#define ATOLL_COMMON_MEMORY_LIMIT_H_

#include <cstdint>
#include <string>

namespace atl {

/// How much memory this process may have, and who says so: "cgroup", "physical memory", or a flag.
struct MemoryLimit {
  uint64_t bytes = 0;
  std::string source;
  bool known = true;  // false: `bytes` is a guess
};

/// Where the kernel says it; other places in tests.
struct MemoryLimitPaths {
  std::string self_cgroup = "/proc/self/cgroup";
  std::string cgroup_root = "/sys/fs/cgroup";
  std::string meminfo = "/proc/meminfo";
};

/// The smallest limit of the process's cgroup and the ones above it (version 1: memory.limit_in_bytes,
/// version 2: memory.max), or the machine's physical memory where that is less. 1 GiB, not `known`, when
/// nothing of it can be read. In a container that sees its own cgroup as the root, the root's limit counts.
MemoryLimit ReadMemoryLimit(const MemoryLimitPaths& paths = {});

}  // namespace atl

#endif  // ATOLL_COMMON_MEMORY_LIMIT_H_
