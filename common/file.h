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

/// The file's bytes. FailedPrecondition when it is larger than `max_bytes`, or no file (see OpenInput). A
/// pipe with a writer (`<(command)`) is read for at most kPipePatience; without one it is refused at once.
absl::StatusOr<std::string> ReadFile(const std::string& path, uint64_t max_bytes = uint64_t{1} << 32);

/// FailedPrecondition when the name is that of a device, a pipe or a socket, which a file that takes its name
/// would remove: as root, /dev/null for the whole machine.
absl::Status CheckReplaceable(const std::string& path);

/// Replaces the file as one: a temporary file beside it, fsync, rename, fsync of the folder. After OK the
/// contents survive a power cut; after an error or a crash the old file stands. `mode` as chmod (0600 for
/// secrets). Refuses as CheckReplaceable.
absl::Status WriteFileAtomically(const std::string& path, std::string_view contents, unsigned mode = 0644);

/// Makes the names in the folder (creations, renames, removals) survive a power cut.
absl::Status FsyncDir(const std::string& path);

/// mkdir -p, with each new name synced into its parent.
absl::Status CreateDirs(const std::string& path);

bool FileExists(const std::string& path);
absl::StatusOr<uint64_t> FileSize(const std::string& path);

/// Names (not paths) in the folder, sorted by bytes, without "." and "..".
absl::StatusOr<std::vector<std::string>> ListDir(const std::string& path);

/// Removes one file. A file that is not there is no error.
absl::Status RemoveFile(const std::string& path);
/// rm -rf. What is not there is no error; links are removed, not followed.
absl::Status RemoveAll(const std::string& path);
absl::Status RenameFile(const std::string& from, const std::string& to);

/// Bytes that an ordinary user may still write to the file system that holds `path`.
absl::StatusOr<uint64_t> FreeBytes(const std::string& path);

}  // namespace atl

#endif  // ATOLL_COMMON_FILE_H_
