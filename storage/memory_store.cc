#include "storage/memory_store.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/status.h"
#include "storage/checkpoint_manifest.h"
#include "storage/committed_tokens.h"
#include "storage/describe.h"
#include "storage/epoch_plan.h"
#include "storage/memory_disk.h"
#include "storage/memory_upload.h"
#include "storage/meta_keys.h"
#include "storage/record.h"
#include "storage/run_checks.h"
#include "storage/run_loader.h"
#include "storage/store_index.h"
#include "storage/upload_checks.h"

namespace atl {
namespace {

FragmentTensors CopyOf(const FragmentTensorsView& view) {
  FragmentTensors copy;
  copy.parameters.assign(view.parameters.begin(), view.parameters.end());
  for (const auto& vector : view.state) copy.state.emplace_back(vector.begin(), vector.end());
  return copy;
}

void CopyInto(const FragmentTensors& tensors, const FragmentTensorsTarget& target) {
  std::ranges::copy(tensors.parameters, target.parameters.begin());
  for (size_t i = 0; i < target.state.size(); ++i)
    std::ranges::copy(tensors.state[i], target.state[i].begin());
}

class MemoryStore final : public RunStore {
 public:
  MemoryStore(std::shared_ptr<MemoryDisk> disk, LoadedRun loaded)
      : disk_(std::move(disk)),
        store_index_(std::move(loaded.store_index)),
        recovery_(std::move(loaded.recovery)) {}

  absl::StatusOr<std::optional<Recovery>> Recover() override;
  absl::Status NoteImport(const std::string& source) override {
    MutexLock lock(&disk_->mutex);
    disk_->noted_import = source;
    return absl::OkStatus();
  }
  absl::Status CreateRun(const RunIdentity& identity, const ConfigEntry& config) override;
  absl::Status PutConfig(const ConfigEntry& config) override;
  absl::Status PutWorker(const WorkerEntry& worker) override;
  absl::Status ReplaceWorkers(const std::vector<WorkerEntry>& stored,
                              const std::vector<WorkerName>& removed) override;
  absl::Status PutEvaluation(const EvaluationEntry& evaluation) override { return PutIfCreated(evaluation); }
  absl::Status PutConfirmation(const ConfirmationEntry& confirmation) override {
    return PutIfCreated(confirmation);
  }
  absl::StatusOr<std::vector<ConfirmationEntry>> Confirmations(FragmentId fragment, Version version) override;
  absl::Status PutControl(const ControlEntry& control) override { return PutIfCreated(control); }
  absl::Status AppendEvent(const EventEntry& event) override { return PutIfCreated(event); }
  absl::StatusOr<std::vector<EventEntry>> ReadEvents(uint64_t after, size_t limit) override;
  absl::Status Seed(const Manifest& manifest, const std::vector<FragmentLayout>& layouts,
                    const std::vector<FragmentTensorsView>& tensors) override;
  uint64_t StagedBytes(const ContributionKey& key) override;
  absl::StatusOr<std::unique_ptr<Upload>> StartUpload(const ContributionKey& key,
                                                      uint64_t payload_bytes) override;
  absl::StatusOr<std::unique_ptr<Payload>> OpenPayload(const ContributionKey& key) override;
  void KeepLate(uint32_t versions) override;
  absl::Status CommitRound(const RoundRecord& record, const std::vector<PartitionEntry>& partitions) override;
  absl::Status StoreVersion(const FragmentLayout& layout, Version version, const FragmentTensorsView& tensors,
                            uint32_t keep) override;
  absl::StatusOr<StoredEntry> Stored(FragmentId fragment) override;
  absl::Status ReadInto(const FragmentLayout& layout, Version version,
                        const FragmentTensorsTarget& target) override;
  absl::Status ReadRange(const FragmentLayout& layout, Version version, const VectorPosition& from,
                         std::span<float> values) override;
  absl::StatusOr<RoundRecord> ReadRound(FragmentId fragment, Version version) override;
  absl::StatusOr<CheckpointEntry> CreateCheckpoint(const CheckpointRequest& request) override;
  absl::StatusOr<std::vector<CheckpointEntry>> ListCheckpoints(bool check) override;
  absl::StatusOr<OpenedCheckpoint> OpenCheckpoint(const std::string& name, CheckpointUse use) override;
  absl::Status DeleteCheckpoint(const std::string& name) override;
  absl::Status BeginEpoch(const EpochStart& start) override;
  absl::StatusOr<uint64_t> DiskBytes() override;

 private:
  template <typename T>
  void Put(const T& record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(disk_->mutex) {
    disk_->meta[meta_keys::KeyOf(record)] = EncodeRecord(record);
  }
  template <typename T>
  absl::Status PutIfCreated(const T& record) {
    MutexLock lock(&disk_->mutex);
    ATOLL_RETURN_IF_ERROR(store_index_.CheckCreated());
    Put(record);
    return absl::OkStatus();
  }
  absl::Status Accept(const ContributionKey& key, uint64_t payload_bytes, const Contribution& contribution)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(disk_->mutex);
  bool Resumable(const ContributionKey& key) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(disk_->mutex);
  void DropStalePartials(FragmentId fragment) ABSL_EXCLUSIVE_LOCKS_REQUIRED(disk_->mutex);

  const std::shared_ptr<MemoryDisk> disk_;
  StoreIndex store_index_ ABSL_GUARDED_BY(disk_->mutex);
  uint32_t late_ ABSL_GUARDED_BY(disk_->mutex) = 0;
  std::optional<Recovery> recovery_ ABSL_GUARDED_BY(disk_->mutex);
  bool recovered_ ABSL_GUARDED_BY(disk_->mutex) = false;
};

absl::StatusOr<std::optional<Recovery>> MemoryStore::Recover() {
  MutexLock lock(&disk_->mutex);
  if (std::exchange(recovered_, true)) {
    return absl::FailedPreconditionError("the recovered state was already read");
  }
  return std::exchange(recovery_, std::nullopt);
}

absl::Status MemoryStore::CreateRun(const RunIdentity& identity, const ConfigEntry& config) {
  MutexLock lock(&disk_->mutex);
  ATOLL_RETURN_IF_ERROR(store_index_.CheckCreate(identity, config));
  Put(identity);
  Put(config);
  store_index_.AppliedCreate(identity);
  store_index_.AppliedConfig(config);
  return absl::OkStatus();
}

absl::Status MemoryStore::PutConfig(const ConfigEntry& config) {
  MutexLock lock(&disk_->mutex);
  ATOLL_RETURN_IF_ERROR(store_index_.CheckConfig(config));
  Put(config);
  store_index_.AppliedConfig(config);
  return absl::OkStatus();
}

absl::Status MemoryStore::PutWorker(const WorkerEntry& worker) {
  ATOLL_RETURN_IF_ERROR(CheckWorkerName(worker.name));
  return PutIfCreated(worker);
}

absl::Status MemoryStore::ReplaceWorkers(const std::vector<WorkerEntry>& stored,
                                         const std::vector<WorkerName>& removed) {
  for (const WorkerEntry& worker : stored) ATOLL_RETURN_IF_ERROR(CheckWorkerName(worker.name));
  for (const WorkerEntry& worker : stored) ATOLL_RETURN_IF_ERROR(PutIfCreated(worker));
  MutexLock lock(&disk_->mutex);
  ATOLL_RETURN_IF_ERROR(store_index_.CheckCreated());
  for (const WorkerName& name : removed) disk_->meta.erase(meta_keys::Worker(name));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<EventEntry>> MemoryStore::ReadEvents(uint64_t after, size_t limit) {
  MutexLock lock(&disk_->mutex);
  std::vector<EventEntry> events;
  for (auto it = disk_->meta.upper_bound(meta_keys::Event(after));
       it != disk_->meta.end() && it->first.starts_with(meta_keys::kEvents) && events.size() < limit; ++it) {
    ATOLL_ASSIGN_OR_RETURN(EventEntry event, DecodeRecord<EventEntry>(it->first, it->second));
    events.push_back(std::move(event));
  }
  return events;
}

absl::StatusOr<std::vector<ConfirmationEntry>> MemoryStore::Confirmations(FragmentId fragment,
                                                                          Version version) {
  MutexLock lock(&disk_->mutex);
  std::vector<ConfirmationEntry> confirmations;
  const auto end = disk_->meta.lower_bound(meta_keys::ConfirmationsOf(fragment, Next(version)));
  for (auto it = disk_->meta.lower_bound(meta_keys::ConfirmationsOf(fragment, version)); it != end; ++it) {
    ATOLL_ASSIGN_OR_RETURN(ConfirmationEntry one, DecodeRecord<ConfirmationEntry>(it->first, it->second));
    confirmations.push_back(std::move(one));
  }
  return confirmations;
}

absl::Status MemoryStore::Seed(const Manifest& manifest, const std::vector<FragmentLayout>& layouts,
                               const std::vector<FragmentTensorsView>& tensors) {
  MutexLock lock(&disk_->mutex);
  ATOLL_RETURN_IF_ERROR(store_index_.CheckSeed(manifest, layouts, tensors));
  Put(manifest);
  for (size_t i = 0; i < layouts.size(); ++i) {
    const HeadEntry head{.fragment = layouts[i].id,
                         .epoch = store_index_.identity()->epoch,
                         .version = Version(0),
                         .config_version = store_index_.config_version()};
    const StoredEntry stored = VersionZero(*store_index_.identity(), layouts[i], tensors[i]);
    disk_->tensors[{layouts[i].id, Version(0)}] = CopyOf(tensors[i]);
    Put(head);
    Put(stored);
    store_index_.AppliedFragment(head, stored);
  }
  disk_->noted_import.clear();
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Upload>> MemoryStore::StartUpload(const ContributionKey& key,
                                                                 uint64_t payload_bytes) {
  MutexLock lock(&disk_->mutex);
  ATOLL_RETURN_IF_ERROR(store_index_.CheckUpload(key, payload_bytes));
  if (!disk_->uploading.insert(key).second) return UploadIsBusy(key);
  std::string staged;
  const auto partial = disk_->payloads.find(key);
  if (partial != disk_->payloads.end() && partial->second->size() <= payload_bytes) staged = *partial->second;
  MemoryUpload::Hooks hooks{
      .accept = [this, key, payload_bytes](const Contribution& c) { return Accept(key, payload_bytes, c); },
      .resumable = [this, key] { return Resumable(key); }};
  return std::make_unique<MemoryUpload>(disk_, key, payload_bytes, std::move(staged), std::move(hooks));
}

uint64_t MemoryStore::StagedBytes(const ContributionKey& key) {
  MutexLock lock(&disk_->mutex);
  if (store_index_.contributions().Find(key) != nullptr || disk_->uploading.contains(key)) return 0;
  const auto partial = disk_->payloads.find(key);
  return partial == disk_->payloads.end() ? 0 : partial->second->size();
}

absl::Status MemoryStore::Accept(const ContributionKey& key, uint64_t payload_bytes,
                                 const Contribution& contribution) {
  ATOLL_RETURN_IF_ERROR(CheckDescribes(key, payload_bytes, contribution));
  ATOLL_RETURN_IF_ERROR(store_index_.CheckUpload(key, payload_bytes));
  Put(contribution);
  store_index_.AppliedAccept(contribution);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Payload>> MemoryStore::OpenPayload(const ContributionKey& key) {
  MutexLock lock(&disk_->mutex);
  if (store_index_.contributions().Find(key) == nullptr) {
    return absl::NotFoundError(absl::StrFormat("%s is not kept", Describe(key)));
  }
  return std::make_unique<MemoryPayload>(disk_->payloads.at(key));
}

void MemoryStore::KeepLate(uint32_t versions) {
  MutexLock lock(&disk_->mutex);
  late_ = versions;
  for (uint32_t i = 0; i < store_index_.fragment_count(); ++i) DropStalePartials(FragmentId(i));
}

bool MemoryStore::Resumable(const ContributionKey& key) const {
  return key.base.value() + late_ >= store_index_.head(key.fragment).value();
}

void MemoryStore::DropStalePartials(FragmentId fragment) {
  std::erase_if(disk_->payloads, [&](const auto& entry) {
    const ContributionKey& key = entry.first;
    return key.fragment == fragment && !Resumable(key) && store_index_.contributions().Find(key) == nullptr &&
           !disk_->uploading.contains(key);
  });
}

absl::Status MemoryStore::CommitRound(const RoundRecord& record,
                                      const std::vector<PartitionEntry>& partitions) {
  MutexLock lock(&disk_->mutex);
  ATOLL_RETURN_IF_ERROR(store_index_.CheckCommit(record));
  Put(record);
  Put(HeadEntry{.fragment = record.fragment,
                .epoch = record.epoch,
                .version = record.version,
                .config_version = store_index_.config_version()});
  for (const PartitionEntry& partition : partitions) Put(partition);
  for (const ContributionKey& key : store_index_.contributions().PassedOver(record)) {
    disk_->meta.erase(meta_keys::KeyOf(key));
    disk_->payloads.erase(key);
  }
  store_index_.AppliedCommit(record);
  DropStalePartials(record.fragment);
  return absl::OkStatus();
}

absl::Status MemoryStore::StoreVersion(const FragmentLayout& layout, Version version,
                                       const FragmentTensorsView& tensors, uint32_t keep) {
  MutexLock lock(&disk_->mutex);
  ATOLL_RETURN_IF_ERROR(store_index_.CheckStore(layout, version, tensors, keep));
  if (version > store_index_.stored(layout.id).versions.back()) {
    disk_->tensors[{layout.id, version}] = CopyOf(tensors);
  }
  const StoreIndex::Retention retention = store_index_.PlanRetention(layout.id, version, keep);
  Put(retention.stored);
  for (const Version dropped : retention.dropped_versions) disk_->tensors.erase({layout.id, dropped});
  for (const ContributionKey& key : retention.dropped_contributions) {
    disk_->meta.erase(meta_keys::KeyOf(key));
    disk_->payloads.erase(key);
  }
  disk_->meta.erase(
      disk_->meta.lower_bound(meta_keys::ConfirmationsOf(layout.id, Version(0))),
      disk_->meta.lower_bound(meta_keys::ConfirmationsOf(layout.id, retention.stored.versions.front())));
  store_index_.AppliedRetention(retention);
  return absl::OkStatus();
}

absl::StatusOr<StoredEntry> MemoryStore::Stored(FragmentId fragment) {
  MutexLock lock(&disk_->mutex);
  return store_index_.CheckStored(fragment);
}

absl::Status MemoryStore::ReadInto(const FragmentLayout& layout, Version version,
                                   const FragmentTensorsTarget& target) {
  MutexLock lock(&disk_->mutex);
  ATOLL_RETURN_IF_ERROR(store_index_.CheckRead(layout, version));
  ATOLL_RETURN_IF_ERROR(CheckTarget(store_index_.stored(layout.id), target));
  CopyInto(disk_->tensors.at({layout.id, version}), target);
  return absl::OkStatus();
}

absl::Status MemoryStore::ReadRange(const FragmentLayout& layout, Version version, const VectorPosition& from,
                                    std::span<float> values) {
  MutexLock lock(&disk_->mutex);
  ATOLL_RETURN_IF_ERROR(store_index_.CheckRead(layout, version));
  ATOLL_RETURN_IF_ERROR(CheckRange(store_index_.stored(layout.id), from, values.size()));
  const FragmentTensors& tensors = disk_->tensors.at({layout.id, version});
  const std::vector<float>& vector = from.vector == 0 ? tensors.parameters : tensors.state[from.vector - 1];
  std::ranges::copy(std::span(vector).subspan(from.first, values.size()), values.begin());
  return absl::OkStatus();
}

absl::StatusOr<RoundRecord> MemoryStore::ReadRound(FragmentId fragment, Version version) {
  MutexLock lock(&disk_->mutex);
  const auto found = disk_->meta.find(meta_keys::Round(fragment, version));
  if (found != disk_->meta.end()) return DecodeRecord<RoundRecord>(found->first, found->second);
  return absl::NotFoundError(absl::StrFormat("there is no record of %s", Describe(fragment, version)));
}

absl::StatusOr<CheckpointEntry> MemoryStore::CreateCheckpoint(const CheckpointRequest& request) {
  MutexLock lock(&disk_->mutex);
  ATOLL_RETURN_IF_ERROR(CheckCheckpointName(request.name));
  ATOLL_RETURN_IF_ERROR(store_index_.CheckStored(FragmentId(0)).status());
  if (disk_->checkpoints.contains(request.name)) {
    return absl::AlreadyExistsError(absl::StrFormat("checkpoint '%s' exists already", request.name));
  }
  MemoryCheckpoint copy{.manifest = {}, .meta = disk_->meta, .payloads = {}, .tensors = disk_->tensors};
  for (const ContributionKey& key : store_index_.contributions().UncountedKeys())
    copy.meta.erase(meta_keys::KeyOf(key));
  for (const ContributionIndex::Counted& counted : store_index_.contributions().CountedContributions()) {
    const ContributionKey& key = counted.contribution.key;
    copy.payloads[key] = disk_->payloads.at(key);
  }
  CheckpointManifest& manifest = copy.manifest;
  manifest.name = request.name;
  manifest.automatic = request.automatic;
  manifest.created_unix_ns = request.created_unix_ns;
  manifest.software_version = request.software_version;
  manifest.run_id = store_index_.identity()->run_id;
  manifest.run_name = store_index_.identity()->name;
  manifest.epoch = store_index_.identity()->epoch;
  std::vector<RoundRecord> rounds;
  for (auto it = copy.meta.lower_bound(std::string(meta_keys::kRounds));
       it != copy.meta.end() && it->first.starts_with(meta_keys::kRounds); ++it) {
    ATOLL_ASSIGN_OR_RETURN(rounds.emplace_back(), DecodeRecord<RoundRecord>(it->first, it->second));
  }
  manifest.committed_tokens = CommittedTokens(rounds);
  for (uint32_t i = 0; i < store_index_.fragment_count(); ++i)
    manifest.versions.push_back(store_index_.head(FragmentId(i)));
  disk_->checkpoints[request.name] = copy;
  return CheckpointEntry{.manifest = manifest, .path = request.name};
}

absl::StatusOr<std::vector<CheckpointEntry>> MemoryStore::ListCheckpoints(bool) {
  MutexLock lock(&disk_->mutex);
  std::vector<CheckpointEntry> entries;
  for (const auto& [name, copy] : disk_->checkpoints)
    entries.push_back({.manifest = copy.manifest, .path = name});
  std::ranges::stable_sort(entries, {}, [](const CheckpointEntry& e) { return e.manifest.created_unix_ns; });
  return entries;
}

absl::StatusOr<OpenedCheckpoint> MemoryStore::OpenCheckpoint(const std::string& name, CheckpointUse) {
  const std::shared_ptr<MemoryDisk> copy = NewMemoryDisk();
  CheckpointManifest manifest;
  {
    MutexLock lock(&disk_->mutex);
    const auto found = disk_->checkpoints.find(name);
    if (found == disk_->checkpoints.end()) return NoSuchCheckpoint(name);
    manifest = found->second.manifest;
    MutexLock inner(&copy->mutex);
    copy->meta = found->second.meta;
    copy->payloads = found->second.payloads;
    copy->tensors = found->second.tensors;
  }
  ATOLL_ASSIGN_OR_RETURN(std::unique_ptr<RunStore> store, OpenMemoryStore(copy));
  ATOLL_ASSIGN_OR_RETURN(std::optional<Recovery> recovery, store->Recover());
  return OpenedCheckpoint{
      .manifest = std::move(manifest), .recovery = *std::move(recovery), .source = std::move(store)};
}

absl::Status MemoryStore::DeleteCheckpoint(const std::string& name) {
  MutexLock lock(&disk_->mutex);
  return disk_->checkpoints.erase(name) > 0 ? absl::OkStatus() : NoSuchCheckpoint(name);
}

absl::Status MemoryStore::BeginEpoch(const EpochStart& start) {
  MutexLock lock(&disk_->mutex);
  ATOLL_RETURN_IF_ERROR(CheckEpoch(store_index_, start));
  const EpochPlan plan = PlanEpoch(store_index_, start);
  Put(plan.identity);
  for (const HeadEntry& head : plan.heads) Put(head);
  for (const StoredEntry& stored : plan.stored) Put(stored);
  for (const RoundRecord& record : start.records) Put(record);
  for (const ContributionKey& key : plan.dropped_contributions) {
    disk_->meta.erase(meta_keys::KeyOf(key));
    disk_->payloads.erase(key);
  }
  std::erase_if(disk_->meta,
                [](const auto& entry) { return entry.first.starts_with(meta_keys::kPartitions); });
  for (const PartitionEntry& partition : start.partitions) Put(partition);
  for (const WorkerEntry& worker : start.workers) Put(worker);
  for (size_t i = 0; i < start.layouts.size(); ++i) {
    disk_->tensors[{start.layouts[i].id, start.records[i].version}] = CopyOf(start.tensors[i]);
  }
  store_index_.AppliedEpoch(plan);
  for (const HeadEntry& head : plan.heads) DropStalePartials(head.fragment);
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> MemoryStore::DiskBytes() {
  MutexLock lock(&disk_->mutex);
  uint64_t bytes = 0;
  for (const auto& [key, value] : disk_->meta) bytes += key.size() + value.size();
  for (const auto& [key, payload] : disk_->payloads) bytes += payload->size();
  for (const auto& [key, tensors] : disk_->tensors) {
    bytes += (1 + tensors.state.size()) * tensors.parameters.size() * sizeof(float);
  }
  return bytes;
}

}  // namespace

std::shared_ptr<MemoryDisk> NewMemoryDisk() { return std::make_shared<MemoryDisk>(); }

std::shared_ptr<MemoryDisk> CloneMemoryDisk(MemoryDisk& disk) {
  std::shared_ptr<MemoryDisk> clone = NewMemoryDisk();
  const MutexLock lock(&disk.mutex);
  const MutexLock of_clone(&clone->mutex);
  clone->meta = disk.meta;
  clone->payloads = disk.payloads;
  clone->tensors = disk.tensors;
  clone->checkpoints = disk.checkpoints;
  clone->noted_import = disk.noted_import;
  return clone;
}

absl::StatusOr<std::unique_ptr<RunStore>> OpenMemoryStore(const std::shared_ptr<MemoryDisk>& disk) {
  MutexLock lock(&disk->mutex);
  RunLoader loader;
  for (const auto& [key, value] : disk->meta) ATOLL_RETURN_IF_ERROR(loader.Add(key, value));
  ATOLL_ASSIGN_OR_RETURN(LoadedRun loaded, std::move(loader).Finish());
  // As in a data directory: without a run there is nothing that was interrupted.
  if (loaded.recovery)
    loaded.recovery->interrupted_import = disk->noted_import;
  else
    disk->noted_import.clear();
  return std::make_unique<MemoryStore>(disk, std::move(loaded));
}

}  // namespace atl
