#include "storage/rocksdb/load_run.h"

#include <string_view>
#include <utility>

#include "common/status.h"

namespace atl {

absl::StatusOr<LoadedRun> LoadRun(MetaDb& meta) {
  RunLoader loader;
  const auto add = [&loader](std::string_view key, std::string_view value) -> absl::StatusOr<bool> {
    ATOLL_RETURN_IF_ERROR(loader.Add(key, value));
    return true;
  };
  ATOLL_RETURN_IF_ERROR(meta.Scan("", "", add));
  return std::move(loader).Finish();
}

}  // namespace atl
