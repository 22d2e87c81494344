#include "storage/rocksdb/rocksdb_run_store.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "common/fault_point.h"
#include "common/file.h"
#include "common/human.h"
#include "common/status.h"
#include "storage/describe.h"
#include "storage/epoch_plan.h"
#include "storage/meta_keys.h"
#include "storage/record.h"
#include "storage/rocksdb/checkpoint_copy.h"
#include "storage/rocksdb/checkpoint_source.h"
#include "storage/rocksdb/file_upload.h"
#include "storage/rocksdb/folder_bytes.h"
#include "storage/rocksdb/restore_note.h"
#include "storage/rocksdb/store_writes.h"
#include "storage/run_checks.h"
#include "storage/upload_checks.h"

namespace atl {

RocksDbRunStore::RocksDbRunStore(Parts parts)
    : lock_(std::move(parts.lock)),
      dir_(std::move(parts.dir)),
      headroom_bytes_(parts.headroom_bytes),
      meta_(std::move(parts.meta)),
      contributions_(std::move(parts.contributions)),
      checkpoints_(*std::move(parts.checkpoints)),
      shards_(std::move(parts.shards)),
      store_index_(std::move(parts.store_index)),
      recovery_(std::move(parts.recovery)),
      restore_note_left_(recovery_ && recovery_->interrupted_restore) {}

absl::StatusOr<std::optional<Recovery>> RocksDbRunStore::Recover() {
  MutexLock lock(&mutex_);
  if (std::exchange(recovered_, true)) {
    return absl::FailedPreconditionError("the recovered state was already read");
  }
  return std::exchange(recovery_, std::nullopt);
}

absl::Status RocksDbRunStore::CheckCreated() {
  MutexLock lock(&mutex_);
  return store_index_.CheckCreated();
}

absl::Status RocksDbRunStore::CheckSpace(uint64_t bytes, const std::string& what) const {
  ATOLL_ASSIGN_OR_RETURN(const uint64_t free_bytes, FreeBytes(dir_.root));
  if (free_bytes >= headroom_bytes_ && free_bytes - headroom_bytes_ >= bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrFormat(
      "%s: the disk of %s is full: %s free, %s needed, including a reserve of %s; free some space and retry",
      what, dir_.root, HumanBytes(free_bytes), HumanBytes(bytes + headroom_bytes_),
      HumanBytes(headroom_bytes_)));
}

absl::Status RocksDbRunStore::NoteImport(const std::string& source) {
  ATOLL_RETURN_IF_ERROR(WriteFileAtomically(dir_.import_note(), source));
  FaultPoint("import.noted");
  return absl::OkStatus();
}

absl::Status RocksDbRunStore::CreateRun(const RunIdentity& identity, const ConfigEntry& config) {
  MutexLock sequence(&sequence_);
  {
    MutexLock lock(&mutex_);
    ATOLL_RETURN_IF_ERROR(store_index_.CheckCreate(identity, config));
  }
  // What an earlier attempt left may have another number of shards.
  shards_.reset();
  ATOLL_RETURN_IF_ERROR(RemoveAll(dir_.shards()));
  ATOLL_ASSIGN_OR_RETURN(shards_, OpenShards(dir_, identity, DbAccess::kCreate));
  MetaBatch batch;
  Put(batch, identity);
  Put(batch, config);
  FaultPoint("create.ready");
  ATOLL_RETURN_IF_ERROR(meta_->Write(batch, Durability::kSynced));
  FaultPoint("create.recorded");
  MutexLock lock(&mutex_);
  store_index_.AppliedCreate(identity);
  store_index_.AppliedConfig(config);
  return absl::OkStatus();
}

absl::Status RocksDbRunStore::PutConfig(const ConfigEntry& config) {
  MutexLock sequence(&sequence_);
  {
    MutexLock lock(&mutex_);
    ATOLL_RETURN_IF_ERROR(store_index_.CheckConfig(config));
  }
  MetaBatch batch;
  Put(batch, config);
  ATOLL_RETURN_IF_ERROR(meta_->Write(batch, Durability::kSynced));
  MutexLock lock(&mutex_);
  store_index_.AppliedConfig(config);
  return absl::OkStatus();
}

template <typename T>
absl::Status RocksDbRunStore::PutIfCreated(const T& record, Durability durability) {
  ATOLL_RETURN_IF_ERROR(CheckCreated());
  MetaBatch batch;
  Put(batch, record);
  return meta_->Write(batch, durability);
}

absl::Status RocksDbRunStore::PutWorker(const WorkerEntry& worker) {
  ATOLL_RETURN_IF_ERROR(CheckWorkerName(worker.name));
  return PutIfCreated(worker, Durability::kSynced);
}

absl::Status RocksDbRunStore::ReplaceWorkers(const std::vector<WorkerEntry>& stored,
                                             const std::vector<WorkerName>& removed) {
  for (const WorkerEntry& worker : stored) ATOLL_RETURN_IF_ERROR(CheckWorkerName(worker.name));
  ATOLL_RETURN_IF_ERROR(CheckCreated());
  MetaBatch batch;
  for (const WorkerEntry& worker : stored) Put(batch, worker);
  for (const WorkerName& name : removed) batch.Delete(meta_keys::Worker(name));
  return meta_->Write(batch, Durability::kSynced);
}

absl::Status RocksDbRunStore::PutEvaluation(const EvaluationEntry& evaluation) {
  return PutIfCreated(evaluation, Durability::kSynced);
}

absl::Status RocksDbRunStore::PutConfirmation(const ConfirmationEntry& confirmation) {
  // Dropping those of old versions names the same keys.
  MutexLock sequence(&sequence_);
  return PutIfCreated(confirmation, Durability::kBuffered);
}

absl::StatusOr<std::vector<ConfirmationEntry>> RocksDbRunStore::Confirmations(FragmentId fragment,
                                                                              Version version) {
  std::vector<ConfirmationEntry> confirmations;
  const auto visit = [&](std::string_view key, std::string_view value) -> absl::StatusOr<bool> {
    ATOLL_ASSIGN_OR_RETURN(ConfirmationEntry one, DecodeRecord<ConfirmationEntry>(key, value));
    confirmations.push_back(std::move(one));
    return true;
  };
  ATOLL_RETURN_IF_ERROR(meta_->Scan(meta_keys::ConfirmationsOf(fragment, version),
                                    meta_keys::ConfirmationsOf(fragment, Next(version)), visit));
  return confirmations;
}

absl::Status RocksDbRunStore::PutControl(const ControlEntry& control) {
  return PutIfCreated(control, Durability::kSynced);
}

absl::Status RocksDbRunStore::AppendEvent(const EventEntry& event) {
  // The run is served: what became of the restore is known by now. Readers of the run leave the
  // note.
  if (restore_note_left_.exchange(false)) RemoveFile(dir_.restore_note()).IgnoreError();
  return PutIfCreated(event, Durability::kBuffered);
}

absl::StatusOr<std::vector<EventEntry>> RocksDbRunStore::ReadEvents(uint64_t after, size_t limit) {
  std::vector<EventEntry> events;
  if (limit == 0 || after == UINT64_MAX) return events;
  const auto visit = [&](std::string_view key, std::string_view value) -> absl::StatusOr<bool> {
    ATOLL_ASSIGN_OR_RETURN(EventEntry event, DecodeRecord<EventEntry>(key, value));
    events.push_back(std::move(event));
    return events.size() < limit;
  };
  ATOLL_RETURN_IF_ERROR(
      meta_->Scan(meta_keys::Event(after + 1), meta_keys::PrefixEnd(meta_keys::kEvents), visit));
  return events;
}

absl::Status RocksDbRunStore::Seed(const Manifest& manifest, const std::vector<FragmentLayout>& layouts,
                                   const std::vector<FragmentTensorsView>& tensors) {
  MutexLock sequence(&sequence_);
  std::optional<RunIdentity> identity;
  uint64_t config = 0;
  {
    MutexLock lock(&mutex_);
    ATOLL_RETURN_IF_ERROR(store_index_.CheckSeed(manifest, layouts, tensors));
    identity = store_index_.identity();
    config = store_index_.config_version();
  }
  uint64_t bytes = 0;
  for (const FragmentTensorsView& view : tensors) bytes += BytesOf(view);
  ATOLL_RETURN_IF_ERROR(CheckSpace(bytes, "seed"));
  MetaBatch batch;
  Put(batch, manifest);
  std::vector<std::pair<HeadEntry, StoredEntry>> entries;
  for (size_t i = 0; i < layouts.size(); ++i) {
    ATOLL_RETURN_IF_ERROR(shards_->Store(layouts[i].id, Version(0), tensors[i]));
    entries.emplace_back(HeadEntry{.fragment = layouts[i].id,
                                   .epoch = identity->epoch,
                                   .version = Version(0),
                                   .config_version = config},
                         VersionZero(*identity, layouts[i], tensors[i]));
    Put(batch, entries.back().first);
    Put(batch, entries.back().second);
  }
  FaultPoint("seed.ready");
  ATOLL_RETURN_IF_ERROR(meta_->Write(batch, Durability::kSynced));
  FaultPoint("seed.recorded");
  // The seed is there, whatever becomes of this file: the next start removes it.
  RemoveFile(dir_.import_note()).IgnoreError();
  MutexLock lock(&mutex_);
  for (const auto& [head, stored] : entries) store_index_.AppliedFragment(head, stored);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Upload>> RocksDbRunStore::StartUpload(const ContributionKey& key,
                                                                     uint64_t payload_bytes) {
  const auto admit = [this, key, payload_bytes] {
    MutexLock lock(&mutex_);
    return store_index_.CheckUpload(key, payload_bytes);
  };
  const auto check = [this, key, payload_bytes](const Contribution& contribution) {
    MutexLock lock(&mutex_);
    ATOLL_RETURN_IF_ERROR(CheckDescribes(key, payload_bytes, contribution));
    return store_index_.CheckUpload(key, payload_bytes);
  };
  // The log may hold the record of an acceptance that failed. Its payload must stay as it is until the record
  // is gone: after a crash the record may count.
  ATOLL_RETURN_IF_ERROR(meta_->Settle());
  ATOLL_RETURN_IF_ERROR(admit());
  ATOLL_RETURN_IF_ERROR(CheckSpace(payload_bytes, Describe(key)));
  return FileUpload::Start(contributions_, key, payload_bytes,
                           {.admit = admit, .check = check, .record = [this](const Contribution& c) {
                              return RecordAccepted(c);
                            }});
}

uint64_t RocksDbRunStore::StagedBytes(const ContributionKey& key) { return contributions_->IdleBytes(key); }

absl::Status RocksDbRunStore::RecordAccepted(const Contribution& contribution) {
  MetaBatch batch;
  Put(batch, contribution);
  ATOLL_RETURN_IF_ERROR(meta_->Write(batch, Durability::kSynced));
  MutexLock lock(&mutex_);
  store_index_.AppliedAccept(contribution);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Payload>> RocksDbRunStore::OpenPayload(const ContributionKey& key) {
  uint64_t bytes = 0;
  {
    MutexLock lock(&mutex_);
    const Contribution* contribution = store_index_.contributions().Find(key);
    if (contribution == nullptr) {
      return absl::NotFoundError(absl::StrFormat("%s is not kept", Describe(key)));
    }
    bytes = contribution->payload_bytes;
  }
  return MappedPayload::Open(contributions_->PathOf(key), bytes);
}

void RocksDbRunStore::KeepLate(uint32_t versions) {
  contributions_->KeepLate(versions);
  MutexLock sequence(&sequence_);  // no head may move between reading and using it
  std::vector<Version> heads;
  {
    MutexLock lock(&mutex_);
    for (uint32_t i = 0; i < store_index_.fragment_count(); ++i)
      heads.push_back(store_index_.head(FragmentId(i)));
  }
  for (uint32_t i = 0; i < heads.size(); ++i) contributions_->LeaveBehind(FragmentId(i), heads[i]);
}

absl::Status RocksDbRunStore::CommitRound(const RoundRecord& record,
                                          const std::vector<PartitionEntry>& partitions) {
  MutexLock sequence(&sequence_);
  std::vector<ContributionKey> passed_over;
  uint64_t config = 0;
  {
    MutexLock lock(&mutex_);
    ATOLL_RETURN_IF_ERROR(store_index_.CheckCommit(record));
    passed_over = store_index_.contributions().PassedOver(record);
    config = store_index_.config_version();
  }
  MetaBatch batch;
  Put(batch, record);
  Put(batch, HeadEntry{.fragment = record.fragment,
                       .epoch = record.epoch,
                       .version = record.version,
                       .config_version = config});
  for (const PartitionEntry& partition : partitions) Put(batch, partition);
  for (const ContributionKey& key : passed_over) batch.Delete(meta_keys::KeyOf(key));
  FaultPoint("commit.ready");
  ATOLL_RETURN_IF_ERROR(meta_->Write(batch, Durability::kSynced));
  FaultPoint("commit.recorded");
  {
    MutexLock lock(&mutex_);
    store_index_.AppliedCommit(record);
  }
  contributions_->LeaveBehind(record.fragment, record.version);
  return absl::OkStatus();
}

absl::Status RocksDbRunStore::StoreVersion(const FragmentLayout& layout, Version version,
                                           const FragmentTensorsView& tensors, uint32_t keep) {
  bool written = false;
  {
    MutexLock lock(&mutex_);
    ATOLL_RETURN_IF_ERROR(store_index_.CheckStore(layout, version, tensors, keep));
    written = store_index_.stored(layout.id).versions.back() == version;
  }
  if (!written) {
    ATOLL_RETURN_IF_ERROR(
        CheckSpace(BytesOf(tensors), absl::StrFormat("store of %s", Describe(layout.id, version))));
    ATOLL_RETURN_IF_ERROR(shards_->Store(layout.id, version, tensors));
  }
  return MarkStored(layout.id, version, keep);
}

absl::Status RocksDbRunStore::MarkStored(FragmentId fragment, Version version, uint32_t keep) {
  StoreIndex::Retention retention;
  MutexLock nothing_is_copied(&retention_);
  {
    MutexLock sequence(&sequence_);  // no round may take a contribution while it is being let go of
    {
      MutexLock lock(&mutex_);
      retention = store_index_.PlanRetention(fragment, version, keep);
    }
    MetaBatch batch;
    Put(batch, retention.stored);
    for (const ContributionKey& key : retention.dropped_contributions) batch.Delete(meta_keys::KeyOf(key));
    const auto drop = [&](std::string_view key, std::string_view) -> absl::StatusOr<bool> {
      batch.Delete(std::string(key));
      return true;
    };
    ATOLL_RETURN_IF_ERROR(meta_->Scan(meta_keys::ConfirmationsOf(fragment, Version(0)),
                                      meta_keys::ConfirmationsOf(fragment, retention.stored.versions.front()),
                                      drop));
    FaultPoint("stored.ready");
    ATOLL_RETURN_IF_ERROR(meta_->Write(batch, Durability::kSynced));
    FaultPoint("stored.recorded");
    MutexLock lock(&mutex_);
    store_index_.AppliedRetention(retention);
  }
  // Nothing names these any more: what a crash leaves of them goes at the next start.
  for (const ContributionKey& key : retention.dropped_contributions) contributions_->Remove(key);
  FaultPoint("drop.contributions");
  const absl::Status dropped = shards_->Drop(fragment, retention.dropped_versions);
  FaultPoint("drop.versions");
  return dropped;
}

absl::StatusOr<StoredEntry> RocksDbRunStore::Stored(FragmentId fragment) {
  MutexLock lock(&mutex_);
  return store_index_.CheckStored(fragment);
}

absl::StatusOr<RoundRecord> RocksDbRunStore::ReadRound(FragmentId fragment, Version version) {
  const std::string key = meta_keys::Round(fragment, version);
  std::optional<RoundRecord> found;
  const auto visit = [&](std::string_view at, std::string_view value) -> absl::StatusOr<bool> {
    ATOLL_ASSIGN_OR_RETURN(found, DecodeRecord<RoundRecord>(at, value));
    return false;
  };
  ATOLL_RETURN_IF_ERROR(meta_->Scan(key, meta_keys::Round(fragment, Next(version)), visit));
  if (found) return *std::move(found);
  return absl::NotFoundError(absl::StrFormat("there is no record of %s", Describe(fragment, version)));
}

absl::Status RocksDbRunStore::ReadInto(const FragmentLayout& layout, Version version,
                                       const FragmentTensorsTarget& target) {
  StoredEntry stored;
  {
    MutexLock lock(&mutex_);
    ATOLL_RETURN_IF_ERROR(store_index_.CheckRead(layout, version));
    stored = store_index_.stored(layout.id);
  }
  ATOLL_RETURN_IF_ERROR(CheckTarget(stored, target));
  return shards_->Read(stored, version, target);
}

absl::Status RocksDbRunStore::ReadRange(const FragmentLayout& layout, Version version,
                                        const VectorPosition& from, std::span<float> values) {
  StoredEntry stored;
  {
    MutexLock lock(&mutex_);
    ATOLL_RETURN_IF_ERROR(store_index_.CheckRead(layout, version));
    stored = store_index_.stored(layout.id);
  }
  ATOLL_RETURN_IF_ERROR(CheckRange(stored, from, values.size()));
  return shards_->ReadRange(stored, version, from, values);
}

absl::StatusOr<CheckpointEntry> RocksDbRunStore::CreateCheckpoint(const CheckpointRequest& request) {
  {
    MutexLock lock(&mutex_);
    ATOLL_RETURN_IF_ERROR(store_index_.CheckStored(FragmentId(0)).status());
  }
  // A full disk must not be filled further: the small records of the run go first.
  ATOLL_RETURN_IF_ERROR(CheckSpace(0, absl::StrFormat("checkpoint '%s'", request.name)));
  MutexLock alone(&making_checkpoint_);
  return checkpoints_.Create(request.name, [&](const std::string& folder) {
    MutexLock nothing_goes(&retention_);
    return CopyRun(dir_, *meta_, *shards_, request, folder);
  });
}

absl::StatusOr<std::vector<CheckpointEntry>> RocksDbRunStore::ListCheckpoints(bool check) {
  return checkpoints_.List(check);
}

absl::StatusOr<OpenedCheckpoint> RocksDbRunStore::OpenCheckpoint(const std::string& name, CheckpointUse use) {
  ATOLL_ASSIGN_OR_RETURN(CheckpointEntry entry, checkpoints_.Check(name));
  std::shared_ptr<const void> note;
  if (use == CheckpointUse::kRestore) {
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
  std::optional<EpochPlan> plan;
  {
    MutexLock lock(&mutex_);
    ATOLL_RETURN_IF_ERROR(CheckEpoch(store_index_, start));
    plan = PlanEpoch(store_index_, start);
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

absl::Status RocksDbRunStore::WriteEpoch(const EpochStart& start, const EpochPlan& plan) {
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
  for (const WorkerEntry& worker : start.workers) Put(batch, worker);
  return meta_->Write(batch, Durability::kSynced);
}

absl::StatusOr<uint64_t> RocksDbRunStore::DiskBytes() { return FolderBytes(dir_.root); }

}  // namespace atl
