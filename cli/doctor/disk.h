#ifndef ATOLL_CLI_DOCTOR_DISK_H_
#define ATOLL_CLI_DOCTOR_DISK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/doctor/check.h"
#include "common/clock.h"

namespace atl {

/// What a run needs of the disk.
struct DiskNeed {
  uint64_t bytes = 0;
  std::string remedy;  // when the disk is smaller
};

/// Speed of the disk under a coordinator's data directory, which need not exist yet (its nearest parent is
/// measured), and its free space against what the run will need. Writes a file of ProbeBytes there and
/// removes it.
std::vector<Check> CheckDisk(const std::string& directory, const std::optional<DiskNeed>& need,
                             const Clock& clock);

/// What is written to measure a disk with so much free space: at most 256 MiB, and at most an eighth of what
/// is free, since a run may be writing to the same disk. 0: too little is free to measure anything.
uint64_t ProbeBytes(uint64_t free_bytes);

/// The judgements without a disk, for tests.
Check JudgeDiskSpeed(double bytes_per_second);
Check JudgeSyncLatency(double seconds);
Check JudgeFreeSpace(uint64_t free_bytes, const std::optional<DiskNeed>& need);

}  // namespace atl

#endif  // ATOLL_CLI_DOCTOR_DISK_H_
