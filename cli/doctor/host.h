#ifndef ATOLL_CLI_DOCTOR_HOST_H_
#define ATOLL_CLI_DOCTOR_HOST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/doctor/check.h"

namespace atl {

/// What a run needs from a machine. Absent bytes: not known, or no configuration was given.
struct HostNeed {
  std::optional<uint64_t> coordinator_bytes = std::nullopt;
  std::optional<uint64_t> worker_bytes = std::nullopt;
  /// The model is external: its workers use neither Atoll's LibTorch nor inner.precision.
  bool own_loop = false;
};

/// Checks processor, BLAS, GPU, open files, and memory against the needs of a configuration.
std::vector<Check> CheckHost(const HostNeed& need);

/// The verdicts without the machine, for tests. `cpuinfo` is the text of /proc/cpuinfo.
Check JudgeProcessor(const std::string& cpuinfo, unsigned threads, bool own_loop = false);
Check JudgeOpenFiles(uint64_t soft, uint64_t hard);
/// The BLAS that the loader finds: the library's name (empty: none) and the result of
/// openblas_get_parallel(): 0 sequential, 1 threads, 2 OpenMP; absent: not OpenBLAS.
Check JudgeBlas(const std::string& library, std::optional<int> openblas_parallel);
Check JudgeMemory(uint64_t total, const HostNeed& need);

}  // namespace atl

#endif  // ATOLL_CLI_DOCTOR_HOST_H_
