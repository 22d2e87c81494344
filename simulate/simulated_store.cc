#include "simulate/simulated_store.h"

#include <span>

#include "common/status.h"
#include "common/thread.h"
#include "storage/meta_keys.h"

namespace atl {
namespace {

// Of half a synced write.
constexpr double kMeanSeconds = 0.004;
constexpr double kLongestStoreSeconds = 4;

}  // namespace

void SimulatedStoreState::Spend() {
  if (dead) return;
  SleepThisThread(Seconds(2 * kMeanSeconds * random.Uniform()));
}

void SimulatedStoreState::LoseUnsynced(MemoryDisk& disk) {
  if (unsynced.empty()) return;
  const MutexLock lock(&disk.mutex);
  for (uint64_t lost = random.Below(unsynced.size() + 1); lost > 0; --lost) {
    disk.meta.erase(unsynced.back());
    unsynced.pop_back();
  }
}

template <typename Write>
absl::Status SimulatedStore::Synced(Write write) {
  state_->Spend();
  const absl::Status written = write();
  if (written.ok()) state_->unsynced.clear();
  state_->Spend();
  return written;
}

absl::Status SimulatedStore::PutConfig(const ConfigEntry& config) {
  return Synced([&] { return store_->PutConfig(config); });
}

absl::Status SimulatedStore::PutWorker(const WorkerEntry& worker) {
  return Synced([&] { return store_->PutWorker(worker); });
}

absl::Status SimulatedStore::ReplaceWorkers(const std::vector<WorkerEntry>& stored,
                                            const std::vector<WorkerName>& removed) {
  return Synced([&] { return store_->ReplaceWorkers(stored, removed); });
}

absl::Status SimulatedStore::PutEvaluation(const EvaluationEntry& evaluation) {
  return Synced([&] { return store_->PutEvaluation(evaluation); });
}

absl::Status SimulatedStore::PutControl(const ControlEntry& control) {
  return Synced([&] { return store_->PutControl(control); });
}

absl::Status SimulatedStore::PutConfirmation(const ConfirmationEntry& confirmation) {
  ATOLL_RETURN_IF_ERROR(store_->PutConfirmation(confirmation));
  state_->unsynced.push_back(meta_keys::KeyOf(confirmation));
  return absl::OkStatus();
}

absl::Status SimulatedStore::AppendEvent(const EventEntry& event) {
  ATOLL_RETURN_IF_ERROR(store_->AppendEvent(event));
  state_->unsynced.push_back(meta_keys::KeyOf(event));
  return absl::OkStatus();
}

absl::Status SimulatedStore::Seed(const Manifest& manifest, const std::vector<FragmentLayout>& layouts,
                                  const std::vector<FragmentTensorsView>& tensors) {
  return Synced([&] {
    ATOLL_RETURN_IF_ERROR(store_->Seed(manifest, layouts, tensors));
    for (size_t i = 0; i < layouts.size() && !state_->dead; ++i) {
      state_->checker->OnSeeded(layouts[i].id, {tensors[i].parameters.begin(), tensors[i].parameters.end()});
    }
    return absl::OkStatus();
  });
}

absl::Status SimulatedStore::CommitRound(const RoundRecord& record,
                                         const std::vector<PartitionEntry>& partitions) {
  return Synced([&] {
    ATOLL_RETURN_IF_ERROR(store_->CommitRound(record, partitions));
    if (!state_->dead) state_->checker->OnCommitted(record);
    return absl::OkStatus();
  });
}

absl::Status SimulatedStore::StoreVersion(const FragmentLayout& layout, Version version,
                                          const FragmentTensorsView& tensors, uint32_t keep) {
  // Tensors are written behind the commit, and a large model takes seconds.
  if (!state_->dead) SleepThisThread(Seconds(kLongestStoreSeconds * state_->random.Uniform()));
  return Synced([&] { return store_->StoreVersion(layout, version, tensors, keep); });
}

class SimulatedStore::SimulatedUpload final : public Upload {
 public:
  SimulatedUpload(std::unique_ptr<Upload> upload, std::shared_ptr<SimulatedStoreState> state)
      : upload_(std::move(upload)), state_(std::move(state)) {}

  uint64_t received_bytes() const override { return upload_->received_bytes(); }
  absl::Status Append(std::span<const std::byte> data) override { return upload_->Append(data); }
  absl::StatusOr<std::unique_ptr<Payload>> View() override { return upload_->View(); }
  absl::Status Accept(const Contribution& contribution) override {
    std::string payload;
    {
      ATOLL_ASSIGN_OR_RETURN(const auto view, upload_->View());
      const auto bytes = view->bytes();
      payload.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
    state_->Spend();
    ATOLL_RETURN_IF_ERROR(upload_->Accept(contribution));
    state_->unsynced.clear();
    if (!state_->dead) state_->checker->OnAccepted(contribution, std::move(payload));
    state_->Spend();
    return absl::OkStatus();
  }
  void Discard() override { upload_->Discard(); }

 private:
  const std::unique_ptr<Upload> upload_;
  const std::shared_ptr<SimulatedStoreState> state_;
};

absl::StatusOr<std::unique_ptr<Upload>> SimulatedStore::StartUpload(const ContributionKey& key,
                                                                    uint64_t payload_bytes) {
  ATOLL_ASSIGN_OR_RETURN(auto upload, store_->StartUpload(key, payload_bytes));
  return std::make_unique<SimulatedUpload>(std::move(upload), state_);
}

}  // namespace atl
