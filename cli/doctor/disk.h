#ifndef ATOLL_CLI_DOCTOR_DISK_H_
#define ATOLL_CLI_DOCTOR_DISK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/doctor/check.h"
#include "common/clock.h"

namespace atl {

/// The disk space that a run needs. Without `bytes`, nobody knows it before a worker brings the model.
struct DiskNeed {
  std::optional<uint64_t> bytes = std::nullopt;  // in all, at most
  uint64_t checkpoint_bytes = 0;                 // of these, for automatic checkpoints
  uint64_t used_bytes = 0;                       // by the data directory as it is
  std::string remedy = {};                       // what to do if the disk is smaller, or to learn the need
};

/// Measures the disk of a coordinator's data directory and compares its free space with the needs of the run:
/// space that a run in the directory uses already counts as free. The directory need not exist; `folder` is
/// its nearest parent (UsableFolder). Writes a file of ProbeBytes there and removes it.
std::vector<Check> CheckDisk(const std::string& directory, const std::string& folder,
                             std::optional<DiskNeed> need, const Clock& clock);

/// Disk space that the files below a folder use; a file with several names counts once. 0: no such folder.
uint64_t UsedBytes(const std::string& directory);

/// Bytes to write for a measurement, given the free space: at most 256 MiB, and at most an eighth of the free
/// space, because a run may use the same disk. 0: too little free space to measure.
uint64_t ProbeBytes(uint64_t free_bytes);

/// The verdicts without a disk, for tests.
Check JudgeDiskSpeed(double bytes_per_second);
Check JudgeSyncLatency(double seconds);
Check JudgeFreeSpace(uint64_t free_bytes, const std::optional<DiskNeed>& need);

}  // namespace atl

#endif  // ATOLL_CLI_DOCTOR_DISK_H_
