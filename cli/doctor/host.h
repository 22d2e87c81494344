#ifndef ATOLL_CLI_DOCTOR_HOST_H_
#define ATOLL_CLI_DOCTOR_HOST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/doctor/check.h"

namespace atl {

/// Processor, BLAS, GPU, open files, and memory against what the plan of a configuration needs (absent: no
/// configuration was given).
std::vector<Check> CheckHost(std::optional<uint64_t> coordinator_bytes, std::optional<uint64_t> worker_bytes);

/// The judgements without the machine, for tests. `cpuinfo` is /proc/cpuinfo.
Check JudgeProcessor(const std::string& cpuinfo, unsigned threads);
Check JudgeOpenFiles(uint64_t soft, uint64_t hard);
/// BLAS as the loader finds it: its library's name (empty: none), and what openblas_get_parallel() says: 0
/// sequential, 1 threads, 2 OpenMP; absent: it is not OpenBLAS.
Check JudgeBlas(const std::string& library, std::optional<int> openblas_parallel);
Check JudgeMemory(uint64_t total, std::optional<uint64_t> coordinator_bytes,
                  std::optional<uint64_t> worker_bytes);

}  // namespace atl

#endif  // ATOLL_CLI_DOCTOR_HOST_H_
