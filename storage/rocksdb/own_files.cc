#include "storage/rocksdb/own_files.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "common/file.h"
#include "common/status.h"
#include "storage/checkpoint_manifest.h"
#include "storage/rocksdb/contribution_folder.h"

namespace atl {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxLockBytes = 20;  // a process id and a line end
constexpr size_t kPrefixDigits = 16;    // of OpenShards

struct Shape;
struct Entry {
  bool (*fits)(std::string_view name);
  const Shape* inside = nullptr;  // null: a regular file
};
/// What a folder may hold.
struct Shape {
  std::vector<Entry> entries = {};
  bool volume = false;  // entries of a new volume do not count, and links are followed
};

bool IsNumber(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

/// BEFORE number AFTER.
bool IsNumbered(std::string_view name, std::string_view before, std::string_view after = "") {
  if (name.size() < before.size() + after.size()) return false;
  if (!name.starts_with(before) || !name.ends_with(after)) return false;
  return IsNumber(name.substr(before.size(), name.size() - before.size() - after.size()));
}

/// The name, or that of the file which takes it when it is complete (WriteFileAtomically).
bool IsWritten(std::string_view name, std::string_view as) {
  return name == as || IsNumbered(name, std::string(as) + ".tmp.");
}

/// RocksDB's, without its text log's renames: that log is off, but other versions may write it.
bool IsDatabaseFile(std::string_view name) {
  for (const char* fixed : {"CURRENT", "IDENTITY", "LOCK", "LOG"}) {
    if (name == fixed) return true;
  }
  for (const char* ending : {".log", ".sst", ".dbtmp"}) {
    if (IsNumbered(name, "", ending)) return true;
  }
  return IsNumbered(name, "MANIFEST-") || IsNumbered(name, "OPTIONS-") ||
         IsNumbered(name, "OPTIONS-", ".dbtmp") || IsNumbered(name, "LOG.old.");
}

bool IsPayload(std::string_view name) { return ContributionFolder::ParseFileName(name).has_value(); }

const Shape& Database() {
  static const auto& shape = *new Shape{.entries = {{.fits = IsDatabaseFile}}};
  return shape;
}

/// With the folders in which RocksDB prepares a copy.
const Shape& Shards() {
  static const auto& shape = *new Shape{
      .entries = {{[](std::string_view name) { return IsNumber(name) || IsNumbered(name, "", ".tmp"); },
                   &Database()}}};
  return shape;
}

const Shape& Contributions() {
  static const auto& shape = *new Shape{.entries = {{.fits = IsPayload}}};
  return shape;
}

const Shape& Checkpoint() {
  static const auto& shape = *new Shape{
      .entries = {{[](std::string_view name) { return name == "meta" || name == "meta.tmp"; }, &Database()},
                  {[](std::string_view name) { return name == "shards"; }, &Shards()},
                  {[](std::string_view name) { return name == "contributions"; }, &Contributions()},
                  {.fits = [](std::string_view name) { return IsWritten(name, kCheckpointManifestFile); }}}};
  return shape;
}

const Shape& Access() {
  static const auto& launched =
      *new Shape{.entries = {{.fits = [](std::string_view name) {
                   return name.ends_with(".token") || name.find(".token.tmp.") != std::string_view::npos;
                 }}}};
  static const auto& shape =
      *new Shape{.entries = {{[](std::string_view name) { return name == "launched"; }, &launched},
                             {.fits = [](std::string_view name) {
                               return IsWritten(name, "tokens.json") || IsWritten(name, "admin.token");
                             }}}};
  return shape;
}

const Shape& Run() {
  static const auto& empty = *new Shape;
  static const auto& staging = *new Shape{.entries = {{.fits = IsStagedFile}}};
  static const auto& checkpoints = *new Shape{
      .entries = {{[](std::string_view name) { return CheckCheckpointName(name).ok(); }, &Checkpoint()}}};
  static const auto& shape = *new Shape{
      .entries = {{[](std::string_view name) { return name == "meta"; }, &Database()},
                  {[](std::string_view name) { return name == "shards"; }, &Shards()},
                  {[](std::string_view name) { return name == "sst"; }, &staging},
                  {[](std::string_view name) { return name == "contributions"; }, &Contributions()},
                  {[](std::string_view name) { return name == "checkpoints"; }, &checkpoints},
                  {[](std::string_view name) { return name == "access"; }, &Access()},
                  {[](std::string_view name) { return name == "workers"; }, &empty},
                  {.fits =
                       [](std::string_view name) {
                         return name == "LOCK" || IsWritten(name, kCheckpointManifestFile) ||
                                name == "checkpoint.begun.json" || IsWritten(name, "epoch.begun") ||
                                IsWritten(name, "restore.begun") || IsWritten(name, "import.begun");
                       }}},
      .volume = true};
  return shape;
}

/// What stands in a new volume: lost+found, and the hidden entries of Kubernetes' mounts.
bool IsOfTheVolume(std::string_view name) { return name.starts_with('.') || name == "lost+found"; }

/// The entry of this name and type, or null.
const Entry* Match(const Shape& shape, const std::string& name, const fs::file_status& status) {
  for (const Entry& entry : shape.entries) {
    const bool type = entry.inside != nullptr ? fs::is_directory(status) : fs::is_regular_file(status);
    if (type && entry.fits(name)) return &entry;
  }
  return nullptr;
}

absl::StatusOr<std::optional<std::string>> FindIn(const std::string& folder, const Shape& shape) {
  ATOLL_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDir(folder));
  for (const std::string& name : names) {
    if (shape.volume && IsOfTheVolume(name)) continue;
    const std::string path = JoinPath(folder, name);
    std::error_code error;
    const fs::file_status status = shape.volume ? fs::status(path, error) : fs::symlink_status(path, error);
    const Entry* entry = Match(shape, name, status);
    if (entry == nullptr) return path;
    if (entry->inside == nullptr) continue;
    ATOLL_ASSIGN_OR_RETURN(std::optional<std::string> found, FindIn(path, *entry->inside));
    if (found) return found;
  }
  return std::nullopt;
}

}  // namespace

bool IsStagedFile(std::string_view name) {
  const bool prefixed = name.size() > kPrefixDigits && name[kPrefixDigits] == '-' &&
                        std::ranges::all_of(name.substr(0, kPrefixDigits), [](char c) {
                          return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
                        });
  if (!prefixed) return name == "probe";  // of ProbeFileCaching
  const std::string_view numbers = name.substr(kPrefixDigits + 1);
  const size_t dash = numbers.find('-');
  return dash != std::string_view::npos && IsNumber(numbers.substr(0, dash)) &&
         IsNumbered(numbers.substr(dash + 1), "", ".sst");
}

bool IsUnfinishedNote(std::string_view name) {
  return IsNumbered(name, "epoch.begun.tmp.") || IsNumbered(name, "restore.begun.tmp.") ||
         IsNumbered(name, "import.begun.tmp.");
}

absl::StatusOr<std::optional<std::string>> FindForeign(const DataDir& dir) {
  ATOLL_ASSIGN_OR_RETURN(std::optional<std::string> found, FindIn(dir.root, Run()));
  // Taking the lock replaces what the file holds.
  if (!found && FileSize(dir.lock()).value_or(0) > kMaxLockBytes) found = dir.lock();
  return found;
}

absl::StatusOr<std::optional<std::string>> FindForeignInCheckpoint(const std::string& folder) {
  std::error_code error;
  if (!fs::is_directory(fs::symlink_status(folder, error))) return folder;
  return FindIn(folder, Checkpoint());
}

}  // namespace atl
