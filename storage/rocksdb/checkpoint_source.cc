#include "storage/rocksdb/checkpoint_source.h"

#include "absl/strings/str_format.h"
#include "common/file.h"
#include "common/status.h"
#include "storage/describe.h"
#include "storage/rocksdb/contribution_folder.h"
#include "storage/rocksdb/file_upload.h"
#include "storage/rocksdb/load_run.h"
#include "storage/run_checks.h"

namespace atl {

absl::StatusOr<CheckpointSource::Opened> CheckpointSource::Open(const std::string& folder) {
  const DataDir dir{.root = folder};
  ATOLL_ASSIGN_OR_RETURN(const std::unique_ptr<MetaDb> meta,
                         MetaDb::Open(dir.meta(), nullptr, DbAccess::kReadOnly));
  ATOLL_ASSIGN_OR_RETURN(LoadedRun loaded, LoadRun(*meta));
  if (!loaded.recovery || !loaded.store_index.seeded()) {
    return absl::FailedPreconditionError(absl::StrFormat("%s holds no parameters", folder));
  }
  ATOLL_ASSIGN_OR_RETURN(std::unique_ptr<ShardSet> shards,
                         OpenShards(dir, loaded.recovery->identity, DbAccess::kReadOnly));
  return Opened{.recovery = *std::move(loaded.recovery),
                .source = std::unique_ptr<CheckpointSource>(
                    new CheckpointSource(dir, std::move(loaded.store_index), std::move(shards)))};
}

absl::StatusOr<StoredEntry> CheckpointSource::Stored(FragmentId fragment) {
  return store_index_.CheckStored(fragment);
}

absl::Status CheckpointSource::ReadInto(const FragmentLayout& layout, Version version,
                                        const FragmentTensorsTarget& target) {
  ATOLL_RETURN_IF_ERROR(store_index_.CheckRead(layout, version));
  const StoredEntry& stored = store_index_.stored(layout.id);
  ATOLL_RETURN_IF_ERROR(CheckTarget(stored, target));
  return shards_->Read(stored, version, target);
}

absl::Status CheckpointSource::ReadRange(const FragmentLayout& layout, Version version,
                                         const VectorPosition& from, std::span<float> values) {
  ATOLL_RETURN_IF_ERROR(store_index_.CheckRead(layout, version));
  const StoredEntry& stored = store_index_.stored(layout.id);
  ATOLL_RETURN_IF_ERROR(CheckRange(stored, from, values.size()));
  return shards_->ReadRange(stored, version, from, values);
}

absl::StatusOr<std::unique_ptr<Payload>> CheckpointSource::OpenPayload(const ContributionKey& key) {
  const Contribution* contribution = store_index_.contributions().Find(key);
  if (contribution == nullptr) return absl::NotFoundError(absl::StrFormat("%s is not kept", Describe(key)));
  return MappedPayload::Open(JoinPath(dir_.contributions(), ContributionFolder::FileName(key)),
                             contribution->payload_bytes);
}

}  // namespace atl
