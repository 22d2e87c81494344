#include "storage/rocksdb/store_folders.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "common/file.h"
#include "storage/rocksdb/data_dir.h"

namespace atl {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFolders[] = {"meta", "shards", "sst", "contributions", "access", "checkpoints"};

/// Without links and dots, also for names that do not exist yet.
fs::path Resolve(const std::string& path) {
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  fs::path resolved = error ? fs::path(path) : fs::weakly_canonical(absolute, error);
  if (error) resolved = absolute.lexically_normal();
  return resolved.has_filename() ? resolved : resolved.parent_path();
}

bool LiesIn(const fs::path& path, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first == folder.end();
}

bool IsFolderOfARun(const fs::path& folder) {
  if (std::ranges::find(kFolders, folder.filename().string()) == std::end(kFolders)) return false;
  return FileExists(JoinPath(DataDir{.root = folder.parent_path().string()}.meta(), "CURRENT"));
}

}  // namespace

std::optional<std::string> StoreFolderAround(const std::string& data_dir, const std::string& path) {
  const fs::path resolved = Resolve(path);
  for (const std::string_view name : kFolders) {
    // Each by itself: a folder of the run may be a link to another disk.
    std::string folder = JoinPath(data_dir, name);
    if (LiesIn(resolved, Resolve(folder))) return folder;
  }
  for (fs::path each = resolved; each.has_relative_path(); each = each.parent_path()) {
    if (IsFolderOfARun(each)) return each.string();
  }
  return std::nullopt;
}

}  // namespace atl
