// A worker that is killed and started again, with the real model: every parameter must be the one of the run
// that nothing disturbed, to the bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_format.h"
#include "client/sync/worker.h"
#include "common/file.h"
#include "tests/client/sync/fake_coordinator.h"
#include "tests/client/sync/fake_time.h"
#include "tests/worker/cuda/executor_queue.h"
#include "tests/worker/torch/tiny_run.h"
#include "worker/torch/torch_replica.h"

namespace atl {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::TinyDataset;
using testing::TinyReplica;

constexpr uint32_t kRounds = 4;
constexpr uint32_t kSteps = 5;

/// A TorchReplica whose process ends before a given inner step.
class MortalReplica final : public Replica {
 public:
  MortalReplica(std::unique_ptr<TorchReplica> inner, uint64_t dies_at_step)
      : inner_(std::move(inner)), dies_at_step_(dies_at_step) {}

  const Manifest& manifest() const override { return inner_->manifest(); }
  absl::Status ReadFragment(const FragmentLayout& fragment, std::span<float> out) override {
    return inner_->ReadFragment(fragment, out);
  }
  absl::Status WriteFragment(const FragmentLayout& fragment, std::span<const float> values) override {
    return inner_->WriteFragment(fragment, values);
  }
  std::unique_ptr<FragmentEncoder> MakeEncoder(const EncoderOptions& options) override {
    return inner_->MakeEncoder(options);
  }
  absl::StatusOr<InnerStepResult> InnerStep(double learning_rate) override {
    if (++steps_ == dies_at_step_) return absl::UnauthenticatedError("killed here");
    return inner_->InnerStep(learning_rate);
  }
  absl::Status SetPartition(uint32_t partition, uint32_t partitions) override {
    return inner_->SetPartition(partition, partitions);
  }
  uint64_t samples_consumed() const override { return inner_->samples_consumed(); }
  absl::Status Seek(uint64_t samples) override { return inner_->Seek(samples); }
  absl::Status SaveState(ReplicaState& state) override { return inner_->SaveState(state); }
  absl::Status LoadState(const ReplicaState& state) override { return inner_->LoadState(state); }
  absl::StatusOr<EvaluationResult> Evaluate(uint32_t batches) override { return inner_->Evaluate(batches); }

 private:
  const std::unique_ptr<TorchReplica> inner_;
  const uint64_t dies_at_step_;  // of this process; 0: never
  uint64_t steps_ = 0;
};

/// Killed at its second push, a worker needs the state of its second round. That of a round is not kept while
/// the one before is still being written: rounds of milliseconds wait here, and come again if that was not
/// enough.
void AwaitSavedRound(const std::string& folder) {
  const auto saved = [&] {
    const auto names = ListDir(folder);
    return names.ok() && std::ranges::any_of(*names, [](const auto& n) { return n.starts_with("round-"); });
  };
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!saved() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  EXPECT_TRUE(saved()) << folder;
}

class ResumeTest : public ::testing::Test {
 protected:
  ResumeTest() : replica_(TinyReplica(TinyDataset("resume"))) {
    replica_.run.model.gpt().dropout = 0.2;  // so that the random numbers matter
    replica_.run.inner.learning_rate = 3e-3;
    replica_.run.inner.warmup_steps = 3;
    replica_.run.inner.steps = kSteps;
    replica_.run.rounds = kRounds;
    replica_.run.push_codec = CodecKind::kInt8;  // so that the residual matters
  }

  std::unique_ptr<FakeCoordinator> Coordinator() {
    auto model = CreateTorchReplica(replica_);
    EXPECT_TRUE(model.ok()) << model.status();
    auto coordinator = std::make_unique<FakeCoordinator>((*model)->manifest(), 1);
    coordinator->run = replica_.run;
    coordinator->finish_at = kRounds;
    coordinator->grant_seed = true;
    return coordinator;
  }

  /// One process, from its start to its end.
  ExitCode Live(FakeCoordinator& coordinator, const std::string& folder, uint64_t dies_at_step = 0) {
    FakeClock clock;
    FakeSleeper sleeper(&clock);
    WorkerObserver observer;
    WorkerOptions options{.join = {.worker = "w1", .secret = std::string(32, 's')}};
    options.state_folder = folder;
    const Logger logger = Logger::Create({.format = LogFormat::kJson, .stream = &log_, .file = ""}).value();
    Worker worker(options,
                  {.data = &coordinator,
                   .control = &coordinator,
                   .clock = &clock,
                   .sleeper = &sleeper,
                   .observer = &observer,
                   .log = logger,
                   .make_replica = [&](const JoinedRun&) -> absl::StatusOr<std::unique_ptr<Replica>> {
                     TorchReplicaOptions of_model = replica_;
                     of_model.log = logger;
                     auto inner = CreateTorchReplica(of_model);
                     if (!inner.ok()) return inner.status();
                     return std::make_unique<MortalReplica>(*std::move(inner), dies_at_step);
                   }});
    const WorkerEnd end = worker.Run();
    EXPECT_TRUE(end.status.ok() || absl::IsUnauthenticated(end.status) || absl::IsInternal(end.status))
        << end.status;
    why_ = std::string(end.status.message());
    return end.code;
  }

  /// Lives, from an empty folder and a new coordinator, until their last round's state is the `kept`-th.
  std::unique_ptr<FakeCoordinator> LiveUntilKept(
      uint64_t kept, const std::string& name,
      const std::function<void(FakeCoordinator&, const std::string& folder)>& lives) {
    for (int attempt = 0; attempt < 50; ++attempt) {
      const std::string folder = Folder(name);
      auto coordinator = Coordinator();
      lives(*coordinator, folder);
      const auto names = ListDir(folder);
      if (names.ok() && std::ranges::count(*names, absl::StrFormat("round-%06d", kept)) == 1)
        return coordinator;
    }
    ADD_FAILURE() << "in 50 attempts the state of the last round was never kept";
    return Coordinator();
  }

  static std::string FolderPath(const std::string& name) {
    return JoinPath(::testing::TempDir(), "resume_" + name);
  }

  /// The same, empty.
  static std::string Folder(const std::string& name) {
    const std::string folder = FolderPath(name);
    EXPECT_TRUE(RemoveAll(folder).ok());
    return folder;
  }

  std::vector<float> Undisturbed() {
    auto coordinator = Coordinator();
    EXPECT_EQ(Live(*coordinator, ""), ExitCode::kOk);
    return coordinator->parameters();
  }

  TorchReplicaOptions replica_;
  std::ostringstream log_;
  std::string why_;  // the last process ended
};

TEST_F(ResumeTest, KilledInAnyRoundItEndsWithTheSameBits) {
  const std::vector<float> expected = Undisturbed();
  auto coordinator = Coordinator();
  const std::string folder = Folder("rounds");
  // Once in each round after the first, and before the second step of the third.
  EXPECT_NE(Live(*coordinator, folder, kSteps + 3), ExitCode::kOk);
  coordinator->samples_consumed = uint64_t{kSteps} * replica_.run.inner.batch;
  EXPECT_NE(Live(*coordinator, folder, kSteps + 2), ExitCode::kOk);
  EXPECT_NE(Live(*coordinator, folder, kSteps + 1), ExitCode::kOk);
  EXPECT_EQ(Live(*coordinator, folder), ExitCode::kOk);
  EXPECT_EQ(coordinator->head(), Version(kRounds));
  EXPECT_THAT(log_.str(), HasSubstr("goes on with the state it kept"));
  EXPECT_EQ(coordinator->parameters(), expected);
}

/// Queues over the host executor, on a device with this much memory for each, that fails after some pushes.
DeviceQueueFactory ExecutorQueues(size_t bytes = SIZE_MAX, uint64_t pushes = UINT64_MAX) {
  return [=] { return std::make_unique<device::ExecutorQueue>(bytes, device::When::kAtOnce, pushes); };
}

TEST_F(ResumeTest, EncodedByKernelsAndKilledItEndsWithTheSameBits) {
  const std::vector<float> expected = Undisturbed();
  EXPECT_THAT(log_.str(), Not(HasSubstr("encoded on the")));
  replica_.device_queues = ExecutorQueues();
  const std::string name = "kernels";
  const auto coordinator = LiveUntilKept(3, name, [&](FakeCoordinator& with, const std::string& folder) {
    EXPECT_NE(Live(with, folder, kSteps + 3), ExitCode::kOk);
    with.samples_consumed = uint64_t{kSteps} * replica_.run.inner.batch;
    with.Fail("Push", {});
    with.Fail("Push", {.status = absl::UnauthenticatedError("killed here"), .applied = true});
    EXPECT_NE(Live(with, folder), ExitCode::kOk);
  });
  // The rest without the device: the residual that the kernels made goes on.
  replica_.device_queues = {};
  EXPECT_EQ(Live(*coordinator, FolderPath(name)), ExitCode::kOk);
  EXPECT_EQ(coordinator->parameters(), expected);
  EXPECT_THAT(log_.str(), HasSubstr("pushes are encoded on the device"));
}

TEST_F(ResumeTest, WithoutRoomOnTheDeviceItEncodesOnTheProcessor) {
  const std::vector<float> expected = Undisturbed();
  replica_.device_queues = ExecutorQueues(1000);
  auto coordinator = Coordinator();
  EXPECT_EQ(Live(*coordinator, ""), ExitCode::kOk);
  EXPECT_EQ(coordinator->parameters(), expected);
  EXPECT_THAT(log_.str(), HasSubstr("the device has no room for"));
}

TEST_F(ResumeTest, ADeviceThatFailsInARoundEndsTheWorkerWhichTakesTheRoundAgain) {
  const std::vector<float> expected = Undisturbed();
  replica_.device_queues = ExecutorQueues(SIZE_MAX, 2);
  auto coordinator = Coordinator();
  const std::string folder = Folder("failing");
  EXPECT_EQ(Live(*coordinator, folder), ExitCode::kInternal);
  EXPECT_THAT(why_, HasSubstr("the device failed at a push"));
  coordinator->samples_consumed = uint64_t{2} * kSteps * replica_.run.inner.batch;
  replica_.device_queues = ExecutorQueues();
  EXPECT_EQ(Live(*coordinator, folder), ExitCode::kOk);
  EXPECT_EQ(coordinator->parameters(), expected);
}

TEST_F(ResumeTest, KilledWhileItPushedItEndsWithTheSameBits) {
  const std::vector<float> expected = Undisturbed();
  for (const bool arrived : {false, true}) {
    const std::string name = arrived ? "after_push" : "before_push";
    const auto coordinator = LiveUntilKept(2, name, [&](FakeCoordinator& with, const std::string& folder) {
      with.Fail("Push", {.before = [&] { AwaitSavedRound(folder); }});
      with.Fail("Push", {.status = absl::UnauthenticatedError("killed here"), .applied = arrived});
      EXPECT_NE(Live(with, folder), ExitCode::kOk);
    });
    EXPECT_EQ(Live(*coordinator, FolderPath(name)), ExitCode::kOk);
    EXPECT_EQ(coordinator->parameters(), expected) << "arrived: " << arrived;
  }
}

TEST_F(ResumeTest, WithoutItsStateItDoesNot) {
  const std::vector<float> expected = Undisturbed();
  auto coordinator = Coordinator();
  const std::string folder = Folder("lost");
  EXPECT_NE(Live(*coordinator, folder, kSteps + 3), ExitCode::kOk);
  coordinator->samples_consumed = uint64_t{kSteps} * replica_.run.inner.batch;
  ASSERT_TRUE(RemoveAll(folder).ok());
  EXPECT_EQ(Live(*coordinator, folder), ExitCode::kOk);
  EXPECT_THAT(log_.str(), HasSubstr("warming up its learning rate"));
  EXPECT_NE(coordinator->parameters(), expected) << "else the tests above prove nothing";
}

TEST_F(ResumeTest, AReplicaOfAnotherKindRejectsTheState) {
  auto adamw = CreateTorchReplica(replica_);
  ASSERT_TRUE(adamw.ok());
  ASSERT_TRUE((*adamw)->InnerStep(1e-3).ok());
  ReplicaState state;
  ASSERT_TRUE((*adamw)->SaveState(state).ok());
  EXPECT_EQ(state.optimizer_steps, 1u);
  EXPECT_EQ(state.moments.size(), 2u);

  TorchReplicaOptions other = replica_;
  other.run.inner.optimizer = InnerOptimizerKind::kSgd;
  auto sgd = CreateTorchReplica(other);
  ASSERT_TRUE(sgd.ok());
  EXPECT_THAT(std::string((*sgd)->LoadState(state).message()), HasSubstr("adamw"));
  EXPECT_EQ((*sgd)->samples_consumed(), 0u) << "nothing changed";

  auto same = CreateTorchReplica(replica_);
  state.random.resize(3);
  EXPECT_THAT(std::string((*same)->LoadState(state).message()), HasSubstr("random generator"));
  ASSERT_TRUE((*adamw)->SaveState(state).ok());
  state.moments.pop_back();
  EXPECT_TRUE(absl::IsInvalidArgument((*same)->LoadState(state)));
}

}  // namespace
}  // namespace atl
