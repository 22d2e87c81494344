#ifndef ATOLL_SIMULATE_SIMULATED_STORE_H_
#define ATOLL_SIMULATE_SIMULATED_STORE_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/random.h"
#include "simulate/run_checker.h"
#include "storage/memory_disk.h"
#include "storage/run_store.h"

namespace atl {

/// What a SimulatedStore shares with its host.
struct SimulatedStoreState {
  SimulatedStoreState(uint64_t seed, RunChecker* checker_) : random(seed), checker(checker_) {}

  /// Takes some of the newest writes that were not synced back, in their order from the last one.
  void LoseUnsynced(MemoryDisk& disk);
  /// Takes the time of a write.
  void Spend();

  SplitMixGenerator random;
  RunChecker* const checker;
  bool dead = false;  // its process was killed: nothing counts any more
  std::vector<std::string> unsynced;  // keys, in the order in which they were written
};

/// A RunStore on a disk that takes time, tells the checker what became durable, and loses unsynced writes when its host
/// cuts the power. Fibers of one scheduler only.
class SimulatedStore final : public RunStore {
 public:
  SimulatedStore(std::unique_ptr<RunStore> store, std::shared_ptr<SimulatedStoreState> state)
      : store_(std::move(store)), state_(std::move(state)) {}

  absl::StatusOr<std::optional<Recovery>> Recover() override { return store_->Recover(); }
  absl::Status NoteImport(const std::string& source) override { return store_->NoteImport(source); }
  absl::Status CreateRun(const RunIdentity& identity, const ConfigEntry& config) override {
    return store_->CreateRun(identity, config);
  }
  absl::Status PutConfig(const ConfigEntry& config) override;
  absl::Status PutWorker(const WorkerEntry& worker) override;
  absl::Status ReplaceWorkers(const std::vector<WorkerEntry>& stored,
                              const std::vector<WorkerName>& removed) override;
  absl::Status PutEvaluation(const EvaluationEntry& evaluation) override;
  absl::Status PutConfirmation(const ConfirmationEntry& confirmation) override;
  absl::StatusOr<std::vector<ConfirmationEntry>> Confirmations(FragmentId fragment, Version version) override {
    return store_->Confirmations(fragment, version);
  }
  absl::Status PutControl(const ControlEntry& control) override;
  absl::Status AppendEvent(const EventEntry& event) override;
  absl::StatusOr<std::vector<EventEntry>> ReadEvents(uint64_t after, size_t limit) override {
    return store_->ReadEvents(after, limit);
  }
  absl::Status Seed(const Manifest& manifest, const std::vector<FragmentLayout>& layouts,
                    const std::vector<FragmentTensorsView>& tensors) override;
  absl::StatusOr<std::unique_ptr<Upload>> StartUpload(const ContributionKey& key, uint64_t payload_bytes) override;
  uint64_t StagedBytes(const ContributionKey& key) override { return store_->StagedBytes(key); }
  absl::StatusOr<std::unique_ptr<Payload>> OpenPayload(const ContributionKey& key) override {
    return store_->OpenPayload(key);
  }
  void KeepLate(uint32_t versions) override { store_->KeepLate(versions); }
  absl::Status CommitRound(const RoundRecord& record, const std::vector<PartitionEntry>& partitions) override;
  absl::Status StoreVersion(const FragmentLayout& layout, Version version, const FragmentTensorsView& tensors,
                            uint32_t keep) override;
  absl::StatusOr<StoredEntry> Stored(FragmentId fragment) override { return store_->Stored(fragment); }
  absl::Status ReadInto(const FragmentLayout& layout, Version version,
                        const FragmentTensorsTarget& target) override {
    return store_->ReadInto(layout, version, target);
  }
  absl::Status ReadRange(const FragmentLayout& layout, Version version, const VectorPosition& from,
                         std::span<float> values) override {
    return store_->ReadRange(layout, version, from, values);
  }
  absl::StatusOr<RoundRecord> ReadRound(FragmentId fragment, Version version) override {
    return store_->ReadRound(fragment, version);
  }
  absl::StatusOr<CheckpointEntry> CreateCheckpoint(const CheckpointRequest& request) override {
    return store_->CreateCheckpoint(request);
  }
  absl::StatusOr<std::vector<CheckpointEntry>> ListCheckpoints(bool check) override {
    return store_->ListCheckpoints(check);
  }
  absl::StatusOr<OpenedCheckpoint> OpenCheckpoint(const std::string& name, CheckpointUse use) override {
    return store_->OpenCheckpoint(name, use);
  }
  absl::Status DeleteCheckpoint(const std::string& name) override { return store_->DeleteCheckpoint(name); }
  absl::Status BeginEpoch(const EpochStart& start) override { return store_->BeginEpoch(start); }
  absl::StatusOr<uint64_t> DiskBytes() override { return store_->DiskBytes(); }

 private:
  class SimulatedUpload;
  /// Time passes before and after a synced write, which takes effect at one moment between.
  template <typename Write>
  absl::Status Synced(Write write);

  const std::unique_ptr<RunStore> store_;
  const std::shared_ptr<SimulatedStoreState> state_;
};

}  // namespace atl

#endif  // ATOLL_SIMULATE_SIMULATED_STORE_H_
