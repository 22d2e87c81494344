#ifndef ATOLL_CLI_DOCTOR_HOST_H_
#define ATOLL_CLI_DOCTOR_HOST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/doctor/check.h"

namespace atl {

/// Checks processor, BLAS, GPU, open files, and memory against the plan of a configuration (absent: no
/// configuration was given).
std::vector<Check> CheckHost(std::optional<uint64_t> coordinator_bytes, std::optional<uint64_t> worker_bytes);

/// The verdicts without the machine, for tests. `cpuinfo` is the text of /proc/cpuinfo.
Check JudgeProcessor(const std::string& cpuinfo, unsigned threads);
Check JudgeOpenFiles(uint64_t soft, uint64_t hard);
/// The BLAS that the loader finds: the library's name (empty: none) and the result of
/// openblas_get_parallel(): 0 sequential, 1 threads, 2 OpenMP; absent: not OpenBLAS.
Check JudgeBlas(const std::string& library, std::optional<int> openblas_parallel);
Check JudgeMemory(uint64_t total, std::optional<uint64_t> coordinator_bytes,
                  std::optional<uint64_t> worker_bytes);

}  // namespace atl

#endif  // ATOLL_CLI_DOCTOR_HOST_H_
