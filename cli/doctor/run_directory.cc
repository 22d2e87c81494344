#include "cli/doctor/run_directory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_format.h"
#include "atoll/v1/run.pb.h"
#include "common/errno.h"
#include "common/file.h"
#include "common/status.h"
#include "storage/rocksdb/rocksdb_store.h"

namespace atl {
namespace {

constexpr char kName[] = "data directory";

absl::StatusOr<std::string> RecordedRun(const std::string& directory) {
  ATOLL_ASSIGN_OR_RETURN(const std::string bytes, RecordedConfig(directory));
  v1::RunConfig config;
  if (!config.ParseFromString(bytes)) {
    return absl::DataLossError("the recorded configuration cannot be read");
  }
  return config.run().name();
}

std::string ParentOf(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

/// The permissions of a folder do not say whether its file system is read-only, so this makes a folder there
/// and removes it. OK on a full disk, which CheckDisk reports.
absl::Status CheckWritable(const std::string& folder) {
  std::string probe = JoinPath(folder, ".atoll-doctor-XXXXXX");
  if (::mkdtemp(probe.data()) == nullptr) {
    const absl::Status failed = ErrnoToStatus(errno, absl::StrFormat("make a folder in %s", folder));
    return absl::IsResourceExhausted(failed) ? absl::OkStatus() : failed;
  }
  return ::rmdir(probe.c_str()) == 0 ? absl::OkStatus()
                                     : ErrnoToStatus(errno, absl::StrFormat("remove %s", probe));
}

absl::StatusOr<std::string> NearestFolder(const std::string& path) {
  for (std::string at = path;; at = ParentOf(at)) {
    struct stat found {};
    if (::stat(at.c_str(), &found) == 0) {
      if (S_ISDIR(found.st_mode)) return at;
      return absl::FailedPreconditionError(absl::StrFormat("%s is not a folder", at));
    }
    const int error = errno;
    struct stat itself {};
    if (::lstat(at.c_str(), &itself) == 0 && S_ISLNK(itself.st_mode)) {
      return absl::FailedPreconditionError(absl::StrFormat("%s is a link that leads to no folder", at));
    }
    const bool absent = error == ENOENT || error == ENOTDIR;
    if (!absent || at == "/" || at == ".") {
      return absl::FailedPreconditionError(
          std::string(ErrnoToStatus(error, absl::StrFormat("look at %s", at)).message()));
    }
  }
}

}  // namespace

absl::StatusOr<std::string> UsableFolder(const std::string& directory) {
  ATOLL_ASSIGN_OR_RETURN(std::string folder, NearestFolder(directory));
  ATOLL_RETURN_IF_ERROR(CheckWritable(folder));
  return folder;
}

Check JudgeRunDirectory(const std::string& directory, const absl::StatusOr<std::string>& recorded,
                        const std::string& wanted) {
  if (absl::IsInvalidArgument(recorded.status())) {
    return Fail(kName, std::string(recorded.status().message()),
                "a coordinator refuses this folder: give another one with --dir");
  }
  if (!recorded.ok()) {
    return Warn(
        kName,
        absl::StrFormat("the run in %s cannot be read: %s", directory,
                        std::string(recorded.status().message())),
        "if no coordinator serves it now, see docs/guides/backup-and-restore.md, 'A file is damaged'");
  }
  if (recorded->empty()) return Ok(kName, directory + " holds no run; a new run can begin there");
  const std::string text = absl::StrFormat("%s holds run '%s'", directory, *recorded);
  if (wanted.empty() || wanted == *recorded) return Ok(kName, text);
  return Fail(
      kName, absl::StrFormat("%s, but the configuration is for run '%s'", text, wanted),
      absl::StrFormat("give an empty folder with --dir to begin run '%s', or the configuration of run '%s'",
                      wanted, *recorded));
}

Check CheckRunDirectory(const std::string& directory, const std::string& wanted) {
  if (const auto usable = UsableFolder(directory); !usable.ok()) {
    return Fail(
        kName, std::string(usable.status().message()),
        "give --dir a folder that the coordinator's user can make and write, and run doctor as that user");
  }
  return JudgeRunDirectory(directory, RecordedRun(directory), wanted);
}

}  // namespace atl
