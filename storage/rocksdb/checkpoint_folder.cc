#include "storage/rocksdb/checkpoint_folder.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/str_format.h"
#include "common/fault_point.h"
#include "common/file.h"
#include "common/status.h"
#include "storage/checkpoint_manifest.h"
#include "storage/rocksdb/checkpoint_files.h"
#include "storage/rocksdb/own_files.h"

namespace atl {
namespace {

uint64_t BytesOf(const std::vector<CheckpointFile>& files) {
  uint64_t bytes = 0;
  for (const CheckpointFile& file : files) bytes += file.bytes;
  return bytes;
}

}  // namespace

absl::StatusOr<CheckpointManifest> ReadCheckpointManifest(const std::string& path) {
  ATOLL_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  return DecodeCheckpointManifest(text, path);
}

absl::StatusOr<CheckpointFolder> CheckpointFolder::Open(const std::string& path) {
  CheckpointFolder folder(path);
  if (!FileExists(path)) return folder;
  ATOLL_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDir(path));
  for (const std::string& name : names) {
    const std::string each = JoinPath(path, name);
    if (!CheckCheckpointName(name).ok() || FileExists(JoinPath(each, kCheckpointManifestFile))) continue;
    // An operator's folder, or a run by now: a coordinator of 0.1.0 was started in it.
    const auto foreign = FindForeignInCheckpoint(each);
    if (!foreign.ok() || *foreign) continue;
    ATOLL_RETURN_IF_ERROR(RemoveAll(each));
  }
  return folder;
}

absl::StatusOr<CheckpointEntry> CheckpointFolder::Create(const std::string& name, const Fill& fill) const {
  ATOLL_RETURN_IF_ERROR(CheckCheckpointName(name));
  const std::string folder = JoinPath(path_, name);
  if (FileExists(JoinPath(folder, kCheckpointManifestFile)))
    return absl::AlreadyExistsError(absl::StrFormat("checkpoint '%s' exists already", name));
  if (FileExists(folder)) {
    return absl::AlreadyExistsError(absl::StrFormat(
        "%s exists and is not a checkpoint; choose another name, or move that folder away", folder));
  }
  ATOLL_RETURN_IF_ERROR(CreateDirs(folder));
  const auto make = [&]() -> absl::StatusOr<CheckpointEntry> {
    CheckpointEntry entry{.manifest = {}, .path = folder};
    ATOLL_ASSIGN_OR_RETURN(Filled filled, fill(folder));
    entry.manifest = std::move(filled.manifest);
    FaultPoint("checkpoint.copied");
    ATOLL_ASSIGN_OR_RETURN(entry.manifest.files, SealFiles(folder));
    ATOLL_ASSIGN_OR_RETURN(entry.left_out, LeaveOutDamaged(folder, filled.payloads, entry.manifest.files));
    FaultPoint("checkpoint.sealed");
    ATOLL_RETURN_IF_ERROR(WriteFileAtomically(JoinPath(folder, kCheckpointManifestFile),
                                              EncodeCheckpointManifest(entry.manifest)));
    entry.bytes = BytesOf(entry.manifest.files);
    entry.shared_bytes = SharedBytes(folder, entry.manifest.files);
    return entry;
  };
  auto made = make();
  if (!made.ok()) RemoveAll(folder).IgnoreError();
  return made;
}

CheckpointEntry CheckpointFolder::Inspect(const std::string& name, bool check_contents) const {
  CheckpointEntry entry{.manifest = {}, .path = JoinPath(path_, name)};
  auto manifest = ReadCheckpointManifest(JoinPath(entry.path, kCheckpointManifestFile));
  absl::Status status = manifest.status();
  if (manifest.ok()) {
    entry.manifest = *std::move(manifest);
    status = CheckCheckpoint(entry.path, entry.manifest,
                             check_contents ? FileCheck::kContents : FileCheck::kSizes);
  }
  entry.manifest.name = name;  // the folder's, also when somebody renamed it
  entry.bytes = BytesOf(entry.manifest.files);
  entry.shared_bytes = SharedBytes(entry.path, entry.manifest.files);
  entry.damage = std::string(status.message());
  return entry;
}

absl::StatusOr<std::vector<CheckpointEntry>> CheckpointFolder::List(bool check_contents) const {
  std::vector<CheckpointEntry> entries;
  if (!FileExists(path_)) return entries;
  ATOLL_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDir(path_));
  for (const std::string& name : names) {
    // A checkpoint in progress, or a deleted one, does not count.
    if (!CheckCheckpointName(name).ok()) continue;
    if (!FileExists(JoinPath(JoinPath(path_, name), kCheckpointManifestFile))) continue;
    entries.push_back(Inspect(name, check_contents));
  }
  std::ranges::sort(entries, [](const CheckpointEntry& a, const CheckpointEntry& b) {
    return std::tie(a.manifest.created_unix_ns, a.manifest.name) <
           std::tie(b.manifest.created_unix_ns, b.manifest.name);
  });
  return entries;
}

absl::StatusOr<CheckpointEntry> CheckpointFolder::Check(const std::string& name) const {
  ATOLL_RETURN_IF_ERROR(CheckCheckpointName(name));
  if (!FileExists(JoinPath(JoinPath(path_, name), kCheckpointManifestFile))) return NoSuchCheckpoint(name);
  CheckpointEntry entry = Inspect(name, /*check_contents=*/true);
  if (entry.damage.empty()) return entry;
  return absl::DataLossError(absl::StrFormat("checkpoint '%s' cannot be used: %s", name, entry.damage));
}

absl::Status CheckpointFolder::Delete(const std::string& name) const {
  ATOLL_RETURN_IF_ERROR(CheckCheckpointName(name));
  const std::string folder = JoinPath(path_, name);
  const std::string manifest = JoinPath(folder, kCheckpointManifestFile);
  if (!FileExists(manifest)) return NoSuchCheckpoint(name);
  ATOLL_RETURN_IF_ERROR(RemoveFile(manifest));
  ATOLL_RETURN_IF_ERROR(FsyncDir(folder));
  FaultPoint("checkpoint.unnamed");
  return RemoveAll(folder);
}

}  // namespace atl
