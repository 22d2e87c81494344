#ifndef ATOLL_STORAGE_ROCKSDB_ROCKSDB_RUN_STORE_H_
#define ATOLL_STORAGE_ROCKSDB_ROCKSDB_RUN_STORE_H_

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/file_lock.h"
#include "common/mutex.h"
#include "storage/rocksdb/checkpoint_folder.h"
#include "storage/rocksdb/contribution_folder.h"
#include "storage/rocksdb/data_dir.h"
#include "storage/rocksdb/meta_db.h"
#include "storage/rocksdb/shard_set.h"
#include "storage/run_store.h"
#include "storage/store_index.h"

namespace atl {

/// RunStore over a MetaDb, a ShardSet and a ContributionFolder. Each call asks the index, writes without
/// holding its lock, and tells the index.
class RocksDbRunStore final : public RunStore {
 public:
  struct Parts {
    FileLock lock;
    DataDir dir;
    uint64_t headroom_bytes = 0;
    std::unique_ptr<MetaDb> meta;
    std::shared_ptr<ContributionFolder> contributions;
    std::optional<CheckpointFolder> checkpoints;
    std::unique_ptr<ShardSet> shards;  // null before the run is created
    StoreIndex store_index;
    std::optional<Recovery> recovery;
  };
  explicit RocksDbRunStore(Parts parts);

  absl::StatusOr<std::optional<Recovery>> Recover() override;
  absl::Status NoteImport(const std::string& source) override;
  absl::Status CreateRun(const RunIdentity& identity, const ConfigEntry& config) override;
  absl::Status PutConfig(const ConfigEntry& config) override;
  absl::Status PutWorker(const WorkerEntry& worker) override;
  absl::Status ReplaceWorkers(const std::vector<WorkerEntry>& stored,
                              const std::vector<WorkerName>& removed) override;
  absl::Status PutEvaluation(const EvaluationEntry& evaluation) override;
  absl::Status PutConfirmation(const ConfirmationEntry& confirmation) override;
  absl::StatusOr<std::vector<ConfirmationEntry>> Confirmations(FragmentId fragment, Version version) override;
  absl::Status PutControl(const ControlEntry& control) override;
  absl::Status AppendEvent(const EventEntry& event) override;
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
  absl::Status PutIfCreated(const T& record, Durability durability);
  absl::Status CheckCreated();
  absl::Status CheckSpace(uint64_t bytes, const std::string& what) const;
  absl::Status RecordAccepted(const Contribution& contribution);
  absl::Status MarkStored(FragmentId fragment, Version version, uint32_t keep);
  absl::Status WriteEpoch(const EpochStart& start, const EpochPlan& plan);

  const FileLock lock_;  // first: given back when all else is closed
  const DataDir dir_;
  const uint64_t headroom_bytes_;
  const std::unique_ptr<MetaDb> meta_;
  const std::shared_ptr<ContributionFolder> contributions_;
  const CheckpointFolder checkpoints_;
  std::unique_ptr<ShardSet> shards_;  // set once, before the index reports a run

  Mutex making_checkpoint_;  // held over the whole of it
  // Held while something that a checkpoint names may disappear, and while the parts of a checkpoint are
  // taken: nothing that StoreVersion drops may go between two of them. Before sequence_.
  Mutex retention_;
  // Held over a whole check-write-apply of the rare writes that depend on each other: creation,
  // configuration, seed, commit, stored mark. Uploads and reads do not take it.
  Mutex sequence_;
  Mutex mutex_;  // never held over I/O
  StoreIndex store_index_ ABSL_GUARDED_BY(mutex_);
  std::optional<Recovery> recovery_ ABSL_GUARDED_BY(mutex_);
  bool recovered_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<bool> restore_note_left_;  // by the process before
};

}  // namespace atl

#endif  // ATOLL_STORAGE_ROCKSDB_ROCKSDB_RUN_STORE_H_
