#ifndef ATOLL_CLI_DOCTOR_DISK_H_
#define ATOLL_CLI_DOCTOR_DISK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/doctor/check.h"
#include "common/clock.h"

namespace atl {

/// The disk space that a run needs.
struct DiskNeed {
  uint64_t bytes = 0;
  std::string remedy;  // what to do if the disk is smaller
};

/// Measures the disk of a coordinator's data directory and compares its free space with the needs of the run.
/// The directory need not exist; its nearest parent is measured. Writes a file of ProbeBytes and removes it.
std::vector<Check> CheckDisk(const std::string& directory, const std::optional<DiskNeed>& need,
                             const Clock& clock);

/// Bytes to write for a measurement, given the free space: at most 256 MiB, and at most an eighth of the free
/// space, because a run may use the same disk. 0: too little free space to measure.
uint64_t ProbeBytes(uint64_t free_bytes);

/// The verdicts without a disk, for tests.
Check JudgeDiskSpeed(double bytes_per_second);
Check JudgeSyncLatency(double seconds);
Check JudgeFreeSpace(uint64_t free_bytes, const std::optional<DiskNeed>& need);

}  // namespace atl

#endif  // ATOLL_CLI_DOCTOR_DISK_H_
