#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/fault_point.h"
#include "common/file.h"
#include "common/status.h"
#include "storage/committed_tokens.h"
#include "storage/describe.h"
#include "storage/meta_keys.h"
#include "storage/rocksdb/checkpoint_files.h"
#include "storage/rocksdb/checkpoint_payloads.h"
#include "storage/rocksdb/checkpoint_source.h"
#include "storage/rocksdb/load_run.h"
#include "storage/rocksdb/restore_note.h"
#include "storage/rocksdb/rocksdb_run_store.h"
#include "storage/rocksdb/store_writes.h"

// Checkpoints and restores.

namespace atl {
namespace {

/// The run in this copy of `meta`, after removing what no round has counted. Nobody can use those
/// contributions: a checkpoint is left for a new epoch, which they may not enter.
absl::StatusOr<LoadedRun> LoadWithoutOpenRounds(const std::string& path) {
  std::vector<ContributionKey> open;
  {
    ATOLL_ASSIGN_OR_RETURN(const std::unique_ptr<MetaDb> meta,
                           MetaDb::Open(path, nullptr, DbAccess::kReadOnly));
    ATOLL_ASSIGN_OR_RETURN(LoadedRun loaded, LoadRun(*meta));
    open = loaded.store_index.UncountedKeys();
    if (open.empty()) return loaded;
  }
  ATOLL_ASSIGN_OR_RETURN(const std::unique_ptr<MetaDb> meta,
                         MetaDb::Open(path, nullptr, DbAccess::kReadWrite));
  MetaBatch batch;
  for (const ContributionKey& key : open) batch.Delete(meta_keys::KeyOf(key));
  ATOLL_RETURN_IF_ERROR(meta->Write(batch, Durability::kSynced));
  return LoadRun(*meta);
}

}  // namespace

absl::StatusOr<CheckpointEntry> RocksDbRunStore::CreateCheckpoint(const CheckpointRequest& request) {
  {
    MutexLock lock(&mutex_);
    ATOLL_RETURN_IF_ERROR(store_index_.CheckStored(FragmentId(0)).status());
  }
  // A full disk must not be filled further: the small records of the run go first.
  ATOLL_RETURN_IF_ERROR(CheckSpace(0, absl::StrFormat("checkpoint '%s'", request.name)));
  MutexLock alone(&making_checkpoint_);
  return checkpoints_.Create(request.name,
                             [&](const std::string& folder) { return CopyParts(request, folder); });
}

absl::StatusOr<CheckpointFolder::Filled> RocksDbRunStore::CopyParts(const CheckpointRequest& request,
                                                                    const std::string& folder) {
  const DataDir copy{.root = folder};
  MutexLock nothing_goes(&retention_);
  // The records first: what they name is there by then, and stays until the lock is given up. What comes
  // after them (a round, a contribution) is not named, and does not count when the copy is opened.
  ATOLL_RETURN_IF_ERROR(meta_->CopyTo(copy.meta()));
  ATOLL_RETURN_IF_ERROR(shards_->CopyTo(copy.shards()));
  ATOLL_ASSIGN_OR_RETURN(const LoadedRun loaded, LoadWithoutOpenRounds(copy.meta()));
  ATOLL_RETURN_IF_ERROR(CreateDirs(copy.contributions()));
  std::vector<CheckpointPayload> payloads = PayloadsOf(loaded.store_index);
  for (const CheckpointPayload& payload : payloads) {
    const absl::Status linked = LinkOrCopy(JoinPath(dir_.root, payload.path), JoinPath(folder, payload.path));
    // What is missing is judged with what is damaged, when everything is there.
    if (!linked.ok() && !absl::IsDataLoss(linked) && !absl::IsNotFound(linked)) return linked;
  }
  const RunIdentity& identity = loaded.recovery->identity;
  CheckpointManifest manifest{.name = request.name,
                              .run_id = identity.run_id,
                              .run_name = identity.name,
                              .software_version = request.software_version,
                              .epoch = identity.epoch,
                              .versions = {},
                              .committed_tokens = CommittedTokens(loaded.recovery->rounds),
                              .created_unix_ns = request.created_unix_ns,
                              .automatic = request.automatic,
                              .files = {}};
  for (const FragmentRecovery& fragment : loaded.recovery->fragments)
    manifest.versions.push_back(fragment.head);
  return CheckpointFolder::Filled{.manifest = std::move(manifest), .payloads = std::move(payloads)};
}

absl::StatusOr<std::vector<CheckpointEntry>> RocksDbRunStore::ListCheckpoints(bool check) {
  return checkpoints_.List(check);
}

absl::StatusOr<OpenedCheckpoint> RocksDbRunStore::OpenCheckpoint(const std::string& name) {
  ATOLL_ASSIGN_OR_RETURN(CheckpointEntry entry, checkpoints_.Check(name));
  std::shared_ptr<const void> note;
  {
    MutexLock lock(&mutex_);
    if (store_index_.identity())
      note = WriteRestoreNote(dir_.restore_note(), name, store_index_.identity()->epoch);
  }
  ATOLL_ASSIGN_OR_RETURN(CheckpointSource::Opened opened, CheckpointSource::Open(entry.path));
  return OpenedCheckpoint{.manifest = std::move(entry.manifest),
                          .recovery = std::move(opened.recovery),
                          .source = std::move(opened.source),
                          .note = std::move(note)};
}

absl::Status RocksDbRunStore::DeleteCheckpoint(const std::string& name) {
  MutexLock alone(&making_checkpoint_);
  return checkpoints_.Delete(name);
}

absl::Status RocksDbRunStore::BeginEpoch(const EpochStart& start) {
  MutexLock nothing_is_copied(&retention_);
  MutexLock sequence(&sequence_);
  std::optional<StoreIndex::EpochPlan> plan;
  {
    MutexLock lock(&mutex_);
    ATOLL_RETURN_IF_ERROR(store_index_.CheckEpoch(start));
    plan = store_index_.PlanEpoch(start);
  }
  uint64_t bytes = 0;
  for (const FragmentTensorsView& view : start.tensors) bytes += BytesOf(view);
  ATOLL_RETURN_IF_ERROR(CheckSpace(bytes, "restore"));
  // From here on tensors are above the head, which is otherwise a sign that records were lost. After an error
  // the note stays until the next start, as they do.
  ATOLL_RETURN_IF_ERROR(WriteFileAtomically(dir_.epoch_begun(), ""));
  for (size_t i = 0; i < start.layouts.size(); ++i) {
    ATOLL_RETURN_IF_ERROR(shards_->Store(start.layouts[i].id, start.records[i].version, start.tensors[i]));
  }
  FaultPoint("epoch.ready");
  ATOLL_RETURN_IF_ERROR(WriteEpoch(start, *plan));
  FaultPoint("epoch.recorded");
  {
    MutexLock lock(&mutex_);
    store_index_.AppliedEpoch(*plan);
  }
  for (const ContributionKey& key : plan->dropped_contributions) contributions_->Remove(key);
  for (const HeadEntry& head : plan->heads) contributions_->LeaveBehind(head.fragment, head.version);
  // From here on this is a run like any other; should the note stay, the next open sees that it is outdated.
  RemoveFile(dir_.checkpoint_begun()).IgnoreError();
  RemoveFile(dir_.epoch_begun()).IgnoreError();
  FsyncDir(dir_.root).IgnoreError();
  return absl::OkStatus();
}

absl::Status RocksDbRunStore::WriteEpoch(const EpochStart& start, const StoreIndex::EpochPlan& plan) {
  MetaBatch batch;
  Put(batch, plan.identity);
  for (const HeadEntry& head : plan.heads) Put(batch, head);
  for (const StoredEntry& stored : plan.stored) Put(batch, stored);
  for (const RoundRecord& record : start.records) Put(batch, record);
  for (const ContributionKey& key : plan.dropped_contributions) batch.Delete(meta_keys::KeyOf(key));
  const auto forget = [&batch](std::string_view key, std::string_view) -> absl::StatusOr<bool> {
    batch.Delete(std::string(key));
    return true;
  };
  ATOLL_RETURN_IF_ERROR(
      meta_->Scan(meta_keys::kPartitions, meta_keys::PrefixEnd(meta_keys::kPartitions), forget));
  for (const PartitionEntry& partition : start.partitions) Put(batch, partition);
  return meta_->Write(batch, Durability::kSynced);
}

}  // namespace atl
