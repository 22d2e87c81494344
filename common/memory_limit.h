#ifndef ATOLL_COMMON_MEMORY_LIMIT_H_
#define ATOLL_COMMON_MEMORY_LIMIT_H_

#include <cstdint>
#include <string>

namespace atl {

/// The memory limit of this process, and its source: "cgroup", "physical memory", or a flag.
struct MemoryLimit {
  uint64_t bytes = 0;
  std::string source;
  bool known = true;  // false: `bytes` is a guess
};

/// Paths of the kernel's files; tests use other paths.
struct MemoryLimitPaths {
  std::string self_cgroup = "/proc/self/cgroup";
  std::string cgroup_root = "/sys/fs/cgroup";
  std::string meminfo = "/proc/meminfo";
};

/// The smallest limit of the process's cgroup and the ones above it (version 1: memory.limit_in_bytes,
/// version 2: memory.max), or the machine's physical memory if that is less. 1 GiB and not `known` if none of
/// them can be read. In a container that sees its own cgroup as the root, the root's limit counts.
MemoryLimit ReadMemoryLimit(const MemoryLimitPaths& paths = {});

}  // namespace atl

#endif  // ATOLL_COMMON_MEMORY_LIMIT_H_
