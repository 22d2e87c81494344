#include "tests/guard/worker_life.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "client/sync/exchange_runner.h"
#include "client/sync/overlapped_sync.h"
#include "common/random.h"
#include "common/status.h"
#include "core/fragment_plan.h"

namespace atl {
namespace {

constexpr int kTurnsOfAWait = 64;  // of AwaitNews and Finish, instead of their time

/// A thread for each exchange, which takes its turns beside the training thread.
class TurnRunner final : public ExchangeRunner {
 public:
  using MakeLane = std::function<std::unique_ptr<ExchangeChannel>()>;
  TurnRunner(Turnstile* turnstile, const void* owner, size_t channels, const MakeLane& make_lane)
      : turnstile_(turnstile), owner_(owner), own_channel_(make_lane()) {
    while (free_.size() < channels) free_.push_back(make_lane());
  }
  ~TurnRunner() override {
    while (!under_way_.empty()) {
      turnstile_->Yield();
      JoinEnded();
    }
    JoinEnded();
  }

  bool Start(Work work) override {
    JoinEnded();
    if (free_.empty()) return false;
    auto channel = std::shared_ptr<ExchangeChannel>(std::move(free_.back()));
    free_.pop_back();
    const int id = turnstile_->Add(owner_);
    under_way_.emplace(id, std::thread([this, id, channel, work = std::move(work)] {
                         turnstile_->Enter(id);
                         work(*channel);
                         ended_.emplace_back(id, channel);
                         notified_ = true;
                         turnstile_->Leave();
                       }));
    return true;
  }
  bool HasFreeChannel() override {
    JoinEnded();
    return !free_.empty();
  }
  void RunHere(Work work) override { work(*own_channel_); }
  void AwaitChange(Duration) override {
    for (int turn = 0; turn < kTurnsOfAWait && !std::exchange(notified_, false); ++turn) turnstile_->Yield();
  }
  void Notify() override { notified_ = true; }
  bool Finish(Duration) override {
    for (int turn = 0; turn < kTurnsOfAWait; ++turn) {
      JoinEnded();
      if (under_way_.empty()) return true;
      turnstile_->Yield();
    }
    return false;
  }

 private:
  /// Its turn was the last thing that an ended thread had.
  void JoinEnded() {
    for (auto& [id, channel] : ended_) {
      under_way_.at(id).join();
      under_way_.erase(id);
      free_.push_back(std::move(channel));
    }
    ended_.clear();
  }

  // One thread has its turn at a time, so nothing here needs a lock.
  Turnstile* const turnstile_;
  const void* const owner_;
  const std::shared_ptr<ExchangeChannel> own_channel_;
  std::vector<std::shared_ptr<ExchangeChannel>> free_;
  std::map<int, std::thread> under_way_;
  std::vector<std::pair<int, std::shared_ptr<ExchangeChannel>>> ended_;
  bool notified_ = false;
};

/// Different for each worker, so that contributions differ.
float TargetOf(const WorkerName& name, size_t tensor, size_t i) {
  const uint64_t noise =
      SplitMix64((uint64_t{static_cast<unsigned char>(name.back())} << 32) + (uint64_t{tensor} << 16) + i);
  return static_cast<float>(static_cast<double>(noise >> 40) / 8388608.0 - 1.0);
}

JoinCall JoinAs(const WorkerName& name) {
  JoinCall parameters{.worker = name, .secret = std::string(32, name.back())};
  parameters.dataset = DatasetSummary{
      .tokenizer = "bytes", .vocabulary = 256, .train_tokens = 100000, .fingerprint = std::string(64, 'a')};
  return parameters;
}

}  // namespace

WorkerLife::WorkerLife(CoordinatorLink* link, const WorkerName& name, const std::string& folder)
    : link_(link),
      name_(name),
      folder_(folder),
      connection_(link),
      sleeper_(link->turnstile, &clock_, &connection_),
      context_{&clock_, &sleeper_, &observer_, &worker_status_, Logger(), &time_},
      retry_policy_(RetryPolicyOptions{}, 1, context_),
      metered_(&connection_, context_),
      retrying_(&metered_, &retry_policy_),
      session_(&retrying_, JoinAs(name), context_),
      heartbeater_(&metered_, context_) {
  const int id = link_->turnstile->Add(this);
  thread_ = std::thread([this, id] {
    link_->turnstile->Enter(id);
    const auto end = Live();
    if (end.ok() && *end != SyncEnd::kStopped && *end != SyncEnd::kRestart) session_.Leave("ended");
    status_ = end.status();
    ended_ = true;
    link_->turnstile->Leave();
  });
}

WorkerLife::~WorkerLife() { thread_.join(); }

void WorkerLife::Kill() {
  Flush();
  const std::string copy = folder_ + ".killed";
  std::filesystem::remove_all(copy);
  if (std::filesystem::exists(folder_)) std::filesystem::copy(folder_, copy);
  connection_.killed = true;
  while (!ended_) {
    for (const int id : link_->turnstile->threads(this)) link_->turnstile->Run(id);
  }
}

void WorkerLife::Flush() {
  if (checkpoint_ != nullptr) checkpoint_->Flush();
}

void WorkerLife::Beat() {
  if (trains()) (void)heartbeater_.Beat();
}

absl::StatusOr<SyncEnd> WorkerLife::Live() {
  ATOLL_ASSIGN_OR_RETURN(JoinedRun described, session_.Describe());
  bool joins = true;
  while (true) {
    if (replica_ == nullptr || built_for_ != described.config_version) {
      ATOLL_RETURN_IF_ERROR(BuildReplica(described));
    }
    if (joins) {
      if (!session_.TakeRestartPending())
        ATOLL_RETURN_IF_ERROR(session_.Join(ManifestHash(replica_->manifest())));
      worker_status_.DropAbove(session_.info().fragments);
      ATOLL_RETURN_IF_ERROR(GoToData());
    }
    joins = false;
    described = session_.info();
    if (described.config_version != built_for_) continue;
    auto end = Synchronise();
    if (end.ok() && *end == SyncEnd::kReconfigured) {
      if (const absl::Status known = session_.Reconfigure(); !known.ok()) end = known;
    }
    if (!end.ok() && RejectionReasonOf(end.status()) == RejectionReason::kWrongEpoch) {
      joins = true;
    } else if (!end.ok() || *end != SyncEnd::kReconfigured) {
      return end;
    }
    described = session_.info();
  }
}

absl::Status WorkerLife::BuildReplica(const JoinedRun& info) {
  ReplicaState carried;
  const bool carries = replica_ != nullptr && replica_->SaveState(carried).ok();
  auto fake = std::make_unique<FakeReplica>(0.0F);
  fake->target_of = [name = name_](size_t tensor, size_t i) { return TargetOf(name, tensor, i); };
  fake->on_step = [this](uint64_t) {
    clock_.Advance(Seconds(0.01));
    link_->turnstile->Yield();
    return killed() ? absl::UnauthenticatedError("killed") : absl::OkStatus();
  };
  replica_ = std::move(fake);
  built_for_ = info.config_version;
  return carries ? replica_->LoadState(carried) : LoadKept(info);
}

absl::Status WorkerLife::LoadKept(const JoinedRun& info) {
  ATOLL_ASSIGN_OR_RETURN(checkpoint_,
                         WorkerCheckpoint::Open(folder_,
                                                {.run_id = info.member.run_id,
                                                 .worker = name_,
                                                 .manifest_hash = ManifestHash(replica_->manifest())},
                                                context_.log));
  const auto kept = checkpoint_->LoadRound();
  if (!kept.ok()) {
    optimizer_warmup_.SetCold();
    return absl::IsNotFound(kept.status()) ? absl::OkStatus() : kept.status();
  }
  optimizer_warmup_.Resume(kept->optimizer_warmup_steps, kept->optimizer_warmup_left);
  return replica_->LoadState(kept->replica);
}

absl::Status WorkerLife::GoToData() {
  const std::optional<DataPart>& data = session_.info().data;
  if (!data.has_value()) return absl::OkStatus();
  ATOLL_RETURN_IF_ERROR(replica_->SetPartition(data->partition, data->partitions));
  return replica_->Seek(data->samples_consumed);
}

absl::StatusOr<SyncEnd> WorkerLife::Synchronise() {
  const JoinedRun& info = session_.info();
  ATOLL_ASSIGN_OR_RETURN(const std::vector<FragmentLayout> layout,
                         LayOutFragments(replica_->manifest(), info.fragments, info.run.sync));
  const ResumeState resume_state{
      .checkpoint = checkpoint_.get(), .key = nullptr, .optimizer_warmup = &optimizer_warmup_};
  if (info.run.sync.mode == SyncMode::kOverlapped) return Overlap(layout, resume_state);
  OuterSync sync({}, &session_, replica_.get(), layout, resume_state, &retry_policy_, &heartbeater_,
                 context_);
  return sync.Run();
}

absl::StatusOr<SyncEnd> WorkerLife::Overlap(const std::vector<FragmentLayout>& layout,
                                            const ResumeState& resume_state) {
  ExchangeSetting setting(context_);
  uint64_t seed = 1;
  TurnRunner runner(link_->turnstile, this, layout.size(), [&] {
    return std::make_unique<ExchangeChannel>(&connection_, &session_, RetryPolicyOptions{}, ++seed, &setting,
                                             nullptr);
  });
  OverlappedSync sync({},
                      {.session = &session_,
                       .replica = replica_.get(),
                       .retry_policy = &retry_policy_,
                       .heartbeater = &heartbeater_,
                       .runner = &runner,
                       .setting = &setting},
                      layout, resume_state, context_);
  return sync.Run();
}

}  // namespace atl
