#ifndef ATOLL_WORKER_TORCH_HARDWARE_H_
#define ATOLL_WORKER_TORCH_HARDWARE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "common/memory_limit.h"

namespace atl {

/// What a device is, for people to see. What is not known is 0, a name never empty.
struct Hardware {
  std::string name;                  // model of the processor, or of the accelerator
  int default_threads = 1;           // that LibTorch uses when it is told nothing
  uint64_t memory_bytes = 0;         // main memory: the machine's, or the limit of a cgroup
  uint64_t device_memory_bytes = 0;  // of the accelerator
};

/// Of a device that ResolveDevice returned: "cpu", "cuda:0".
Hardware HardwareOf(const std::string& device);

/// Main memory that this process may have (common/memory_limit.h); 0 when that is not known.
uint64_t MainMemory(const MemoryLimitPaths& paths = {});

/// The processor's model in the text of /proc/cpuinfo; empty where it names none.
std::string ProcessorIn(std::string_view cpuinfo);

}  // namespace atl

#endif  // ATOLL_WORKER_TORCH_HARDWARE_H_
