#include "storage/rocksdb/checkpoint_payloads.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/file.h"
#include "common/status.h"
#include "storage/describe.h"
#include "storage/rocksdb/contribution_folder.h"
#include "storage/rocksdb/data_dir.h"
#include "storage/rocksdb/load_run.h"

namespace atl {
namespace {

constexpr char kContributions[] = "contributions";

std::string RelativePath(const ContributionKey& key) {
  return JoinPath(kContributions, ContributionFolder::FileName(key));
}

/// How the file differs from the payload that was accepted; empty: not at all.
std::string Difference(const CheckpointPayload& payload, const std::vector<CheckpointFile>& files) {
  const auto found = std::ranges::find(files, payload.path, &CheckpointFile::path);
  if (found == files.end()) return "is missing";
  if (found->bytes != payload.bytes) {
    return absl::StrFormat("has %d bytes instead of %d", found->bytes, payload.bytes);
  }
  if (found->crc32c == payload.crc32c) return "";
  return absl::StrFormat("has the crc32c %08x instead of %08x", found->crc32c, payload.crc32c);
}

absl::Status Damaged(const CheckpointPayload& payload, const std::string& difference,
                     const std::string& advice) {
  return absl::DataLossError(
      absl::StrFormat("the payload %s of %s %s, and version %d cannot be rebuilt without it; %s",
                      payload.path, payload.contribution, difference, payload.version.value(), advice));
}

/// Of a checkpoint whose records are whole.
absl::StatusOr<StoreIndex> IndexOf(const std::string& folder) {
  const DataDir dir{.root = folder};
  ATOLL_ASSIGN_OR_RETURN(const std::unique_ptr<MetaDb> meta,
                         MetaDb::Open(dir.meta(), nullptr, DbAccess::kReadOnly));
  ATOLL_ASSIGN_OR_RETURN(LoadedRun loaded, LoadRun(*meta));
  return std::move(loaded.store_index);
}

}  // namespace

std::vector<CheckpointPayload> PayloadsOf(const StoreIndex& store_index) {
  std::vector<CheckpointPayload> payloads;
  for (const ContributionIndex::Counted& counted : store_index.contributions().CountedContributions()) {
    const Contribution& contribution = counted.contribution;
    const Version stored = store_index.stored(contribution.key.fragment).versions.back();
    payloads.push_back({.path = RelativePath(contribution.key),
                        .bytes = contribution.payload_bytes,
                        .crc32c = contribution.payload_crc32c,
                        .contribution = Describe(contribution.key),
                        .version = counted.version,
                        .needed = counted.version > stored});
  }
  return payloads;
}

absl::StatusOr<std::vector<std::string>> LeaveOutDamaged(const std::string& folder,
                                                         const std::vector<CheckpointPayload>& payloads,
                                                         std::vector<CheckpointFile>& files) {
  std::vector<std::string> left_out;
  for (const CheckpointPayload& payload : payloads) {
    const std::string difference = Difference(payload, files);
    if (difference.empty()) continue;
    if (payload.needed) {
      return Damaged(payload, difference,
                     "make the checkpoint again when the coordinator has stored that version");
    }
    ATOLL_RETURN_IF_ERROR(RemoveAll(JoinPath(folder, payload.path)));
    std::erase_if(files, [&](const CheckpointFile& file) { return file.path == payload.path; });
    left_out.push_back(payload.path);
  }
  if (!left_out.empty()) ATOLL_RETURN_IF_ERROR(FsyncDir(JoinPath(folder, kContributions)));
  return left_out;
}

absl::Status CheckCheckpoint(const std::string& folder, const CheckpointManifest& manifest, FileCheck check) {
  std::vector<CheckpointFile> others, payload_files;
  for (const CheckpointFile& file : manifest.files) {
    const bool payload = file.path.starts_with(JoinPath(kContributions, ""));
    (payload ? payload_files : others).push_back(file);
  }
  ATOLL_RETURN_IF_ERROR(CheckFiles(folder, others, check));
  const absl::Status whole = CheckFiles(folder, payload_files, check);
  if (whole.ok() && check == FileCheck::kSizes) return whole;
  ATOLL_ASSIGN_OR_RETURN(const StoreIndex store_index, IndexOf(folder));
  std::set<std::string> open;
  for (const ContributionKey& key : store_index.contributions().UncountedKeys())
    open.insert(RelativePath(key));
  std::erase_if(payload_files, [&](const CheckpointFile& file) { return open.contains(file.path); });
  if (!whole.ok()) ATOLL_RETURN_IF_ERROR(CheckFiles(folder, payload_files, check));
  for (const CheckpointPayload& payload : PayloadsOf(store_index)) {
    const std::string difference = Difference(payload, payload_files);
    if (payload.needed && !difference.empty()) return Damaged(payload, difference, "use another checkpoint");
  }
  return absl::OkStatus();
}

}  // namespace atl
