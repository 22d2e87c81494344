#include "cli/doctor/run_directory.h"

#include "absl/strings/str_format.h"
#include "atoll/v1/run.pb.h"
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

}  // namespace

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
  return JudgeRunDirectory(directory, RecordedRun(directory), wanted);
}

}  // namespace atl
