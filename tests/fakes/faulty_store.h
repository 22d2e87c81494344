#ifndef ATOLL_TESTS_FAKES_FAULTY_STORE_H_
#define ATOLL_TESTS_FAKES_FAULTY_STORE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "storage/run_store.h"

namespace atl {

/// What fails, shared between a test and the FaultyStore that it gave away. Counters count attempts that were
/// refused.
struct Faults {
  std::atomic<bool> seed{false};
  std::atomic<bool> commit{false};
  std::atomic<bool> store{false};
  std::atomic<bool> upload{false};
  std::atomic<bool> accept{false};
  std::atomic<bool> member{false};
  std::atomic<bool> checkpoint{false};
  std::atomic<bool> epoch{false};
  std::atomic<bool> payload{false};     // the disk returns another bit than was written
  std::atomic<int> started_uploads{0};  // all of them
  std::atomic<int> rejected_commits{0};
  std::atomic<int> rejected_stores{0};
  std::atomic<uint32_t> kept_late{0};  // of the last KeepLate
  // Called once, by the thread that uses the store; set while nobody does.
  std::function<void()> before_upload = nullptr;
  std::function<void()> after_epoch = nullptr;
};

/// A payload with one bit changed.
class DamagedPayload final : public Payload {
 public:
  explicit DamagedPayload(const Payload& whole) : bytes_(whole.bytes().begin(), whole.bytes().end()) {
    bytes_[bytes_.size() / 2] ^= std::byte{1};
  }
  std::span<const std::byte> bytes() const override { return bytes_; }
  std::string path() const override { return "/disk/payload"; }

 private:
  std::vector<std::byte> bytes_;
};

/// A store whose disk is full when the test says so.
class FaultyStore final : public RunStore {
 public:
  FaultyStore(std::unique_ptr<RunStore> store, std::shared_ptr<Faults> faults)
      : store_(std::move(store)), faults_(std::move(faults)) {}

  absl::StatusOr<std::optional<Recovery>> Recover() override { return store_->Recover(); }
  absl::Status NoteImport(const std::string& source) override { return store_->NoteImport(source); }
  absl::Status CreateRun(const RunIdentity& identity, const ConfigEntry& config) override {
    return store_->CreateRun(identity, config);
  }
  absl::Status PutConfig(const ConfigEntry& config) override { return store_->PutConfig(config); }
  absl::Status PutWorker(const WorkerEntry& worker) override {
    return faults_->member ? Full() : store_->PutWorker(worker);
  }
  absl::Status ReplaceWorkers(const std::vector<WorkerEntry>& stored,
                              const std::vector<WorkerName>& removed) override {
    return faults_->member ? Full() : store_->ReplaceWorkers(stored, removed);
  }
  absl::Status PutEvaluation(const EvaluationEntry& entry) override { return store_->PutEvaluation(entry); }
  absl::Status PutConfirmation(const ConfirmationEntry& entry) override {
    return store_->PutConfirmation(entry);
  }
  absl::StatusOr<std::vector<ConfirmationEntry>> Confirmations(FragmentId fragment,
                                                               Version version) override {
    return store_->Confirmations(fragment, version);
  }
  absl::Status PutControl(const ControlEntry& control) override {
    return faults_->member ? Full() : store_->PutControl(control);
  }
  absl::Status AppendEvent(const EventEntry& event) override { return store_->AppendEvent(event); }
  absl::StatusOr<std::vector<EventEntry>> ReadEvents(uint64_t after, size_t limit) override {
    return store_->ReadEvents(after, limit);
  }
  absl::Status Seed(const Manifest& manifest, const std::vector<FragmentLayout>& layouts,
                    const std::vector<FragmentTensorsView>& tensors) override {
    return faults_->seed ? Full() : store_->Seed(manifest, layouts, tensors);
  }
  absl::StatusOr<std::unique_ptr<Upload>> StartUpload(const ContributionKey& key, uint64_t bytes) override {
    ++faults_->started_uploads;
    Meanwhile(faults_->before_upload);
    if (faults_->upload) return Full();
    auto upload = store_->StartUpload(key, bytes);
    if (!upload.ok()) return upload;
    return std::make_unique<FaultyUpload>(*std::move(upload), faults_);
  }
  uint64_t StagedBytes(const ContributionKey& key) override { return store_->StagedBytes(key); }
  absl::StatusOr<std::unique_ptr<Payload>> OpenPayload(const ContributionKey& key) override {
    auto payload = store_->OpenPayload(key);
    if (!payload.ok() || !faults_->payload) return payload;
    return std::make_unique<DamagedPayload>(**payload);
  }
  void KeepLate(uint32_t versions) override {
    faults_->kept_late = versions;
    store_->KeepLate(versions);
  }
  absl::Status CommitRound(const RoundRecord& record,
                           const std::vector<PartitionEntry>& partitions) override {
    if (!faults_->commit) return store_->CommitRound(record, partitions);
    ++faults_->rejected_commits;
    return Full();
  }
  absl::Status StoreVersion(const FragmentLayout& layout, Version version, const FragmentTensorsView& tensors,
                            uint32_t keep) override {
    if (!faults_->store) return store_->StoreVersion(layout, version, tensors, keep);
    ++faults_->rejected_stores;
    return Full();
  }
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
    return faults_->checkpoint ? Full() : store_->CreateCheckpoint(request);
  }
  absl::StatusOr<std::vector<CheckpointEntry>> ListCheckpoints(bool check) override {
    return store_->ListCheckpoints(check);
  }
  absl::StatusOr<OpenedCheckpoint> OpenCheckpoint(const std::string& name, CheckpointUse use) override {
    return store_->OpenCheckpoint(name, use);
  }
  absl::Status DeleteCheckpoint(const std::string& name) override { return store_->DeleteCheckpoint(name); }
  absl::Status BeginEpoch(const EpochStart& start) override {
    const absl::Status begun = faults_->epoch ? Full() : store_->BeginEpoch(start);
    Meanwhile(faults_->after_epoch);
    return begun;
  }
  absl::StatusOr<uint64_t> DiskBytes() override { return store_->DiskBytes(); }

 private:
  static void Meanwhile(std::function<void()>& what) {
    if (const auto once = std::exchange(what, nullptr)) once();
  }
  static absl::Status Full() { return absl::ResourceExhaustedError("no space left on device (injected)"); }

  class FaultyUpload final : public Upload {
   public:
    FaultyUpload(std::unique_ptr<Upload> upload, std::shared_ptr<Faults> faults)
        : upload_(std::move(upload)), faults_(std::move(faults)) {}
    uint64_t received_bytes() const override { return upload_->received_bytes(); }
    absl::Status Append(std::span<const std::byte> data) override { return upload_->Append(data); }
    absl::StatusOr<std::unique_ptr<Payload>> View() override { return upload_->View(); }
    absl::Status Accept(const Contribution& contribution) override {
      return faults_->accept ? Full() : upload_->Accept(contribution);
    }
    void Discard() override { upload_->Discard(); }

   private:
    const std::unique_ptr<Upload> upload_;
    const std::shared_ptr<Faults> faults_;
  };

  const std::unique_ptr<RunStore> store_;
  const std::shared_ptr<Faults> faults_;
};

}  // namespace atl

#endif  // ATOLL_TESTS_FAKES_FAULTY_STORE_H_
