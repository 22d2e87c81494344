#ifndef ATOLL_STORAGE_ROCKSDB_CHECKPOINT_FILES_H_
#define ATOLL_STORAGE_ROCKSDB_CHECKPOINT_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/checkpoint.h"

// The files below a checkpoint's folder.

namespace atl {

/// A second name for the file where the file system can give one, else a synced copy.
absl::Status LinkOrCopy(const std::string& from, const std::string& to);

/// Every file below the folder, by path, with size and checksum; files and folders are synced on the way, so
/// that nothing of it can be lost once a manifest names it.
absl::StatusOr<std::vector<CheckpointFile>> SealFiles(const std::string& folder);

/// kSizes looks, kContents reads everything.
enum class FileCheck { kSizes, kContents };
/// DataLoss naming the first file that is missing, of another size, or (kContents) of another checksum.
absl::Status CheckFiles(const std::string& folder, const std::vector<CheckpointFile>& files, FileCheck check);

/// Of these files, in bytes: those that have another name too.
uint64_t SharedBytes(const std::string& folder, const std::vector<CheckpointFile>& files);

}  // namespace atl

#endif  // ATOLL_STORAGE_ROCKSDB_CHECKPOINT_FILES_H_
