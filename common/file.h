#ifndef ATOLL_COMMON_FILE_H_
#define ATOLL_COMMON_FILE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"

// Whole files and folders. Errors name the path; see common/errno.h for the codes (a full disk is
// ResourceExhausted). Paths are plain strings in the file system's encoding.

namespace atl {

std::string JoinPath(std::string_view folder, std::string_view name);

constexpr Duration kPipePatience = Seconds(3);

/// Reads the file. FailedPrecondition if it is larger than `max_bytes` or not a file (see OpenInput). Reads a
/// pipe with a writer (`<(command)`) for at most kPipePatience; rejects a pipe without a writer immediately.
absl::StatusOr<std::string> ReadFile(const std::string& path, uint64_t max_bytes = uint64_t{1} << 32);

/// Replaces the file atomically: temporary file in the same folder, fsync, rename, fsync of the folder. After
/// OK, the contents survive a power cut; after an error or a crash, the old file is unchanged. `mode` as for
/// chmod (0600 for secrets). Follows links and fails as ResolveOutput does (common/output_target.h): the
/// target of a link is replaced, and a pipe behind a link is written to.
absl::Status WriteFileAtomically(const std::string& path, std::string_view contents, unsigned mode = 0644);

/// Makes creations, renames and removals in the folder survive a power cut.
absl::Status FsyncDir(const std::string& path);

/// mkdir -p, with each new name synced into its parent.
absl::Status CreateDirs(const std::string& path);

bool FileExists(const std::string& path);
absl::StatusOr<uint64_t> FileSize(const std::string& path);

/// Names (not paths) in the folder, sorted by bytes, without "." and "..".
absl::StatusOr<std::vector<std::string>> ListDir(const std::string& path);

/// Removes one file. OK if it does not exist.
absl::Status RemoveFile(const std::string& path);
/// Removes a tree, like rm -rf. OK if it does not exist. Removes links without following them.
absl::Status RemoveAll(const std::string& path);
absl::Status RenameFile(const std::string& from, const std::string& to);

/// Free bytes for ordinary users on the file system of `path`.
absl::StatusOr<uint64_t> FreeBytes(const std::string& path);

}  // namespace atl

#endif  // ATOLL_COMMON_FILE_H_
