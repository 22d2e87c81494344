// The replica on a CUDA device against the replica on the processor.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "tests/worker/torch/cuda_device.h"
#include "tests/worker/torch/tiny_run.h"
#include "worker/torch/hardware.h"
#include "worker/torch/torch_replica.h"

namespace atl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::Parameters;
using testing::TinyDataset;
using testing::TinyReplica;
using testing::WholeModel;

class DeviceTest : public testing::CudaTest {
 protected:
  DeviceTest() : options_(TinyReplica(TinyDataset("device"))) {}

  std::unique_ptr<TorchReplica> On(const std::string& device) {
    TorchReplicaOptions options = options_;
    options.device = device;
    auto replica = CreateTorchReplica(options);
    EXPECT_TRUE(replica.ok()) << replica.status();
    return replica.ok() ? *std::move(replica) : nullptr;
  }

  TorchReplicaOptions options_;
};

std::vector<InnerStepResult> Train(Replica& replica, int steps, double learning_rate) {
  std::vector<InnerStepResult> results;
  for (int i = 0; i < steps; ++i) {
    const auto step = replica.InnerStep(learning_rate);
    EXPECT_TRUE(step.ok()) << step.status();
    if (!step.ok()) break;
    results.push_back(*step);
  }
  return results;
}

double Distance(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(double{a[i]} - b[i], 2);
    norm += std::pow(double{b[i]}, 2);
  }
  return std::sqrt(difference / norm);
}

// SGD: Adam's first steps are the signs of the gradients, and a sign changes with a rounding.
TEST_F(DeviceTest, StepsInFloat32AreThoseOfTheProcessor) {
  options_.run.inner.optimizer = InnerOptimizerKind::kSgd;
  options_.run.inner.accumulation = 3;
  const auto host = On("cpu"), device = On("cuda");
  const std::vector<float> initial = Parameters(*host);
  EXPECT_EQ(Parameters(*device), initial) << "one seed, one model on every device";
  const auto expected = Train(*host, 10, 0.05), found = Train(*device, 10, 0.05);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i].loss, expected[i].loss, 1e-5 * expected[i].loss) << i;
    EXPECT_NEAR(found[i].gradient_norm, expected[i].gradient_norm, 1e-4 * expected[i].gradient_norm) << i;
    EXPECT_EQ(found[i].tokens, expected[i].tokens);
  }
  const double moved = Distance(Parameters(*host), initial);
  const double apart = Distance(Parameters(*device), Parameters(*host));
  EXPECT_LT(apart, 1e-4 * moved) << moved;
  const auto a = host->Evaluate(10), b = device->Evaluate(10);
  ASSERT_TRUE(a.ok() && b.ok()) << a.status() << b.status();
  EXPECT_NEAR(a->loss, b->loss, 1e-5 * a->loss);
}

TEST_F(DeviceTest, Bf16StaysCloseToFloat32) {
  const auto exact = On("cuda");
  options_.run.inner.precision = Precision::kBf16;
  const auto rounded = On("cuda");
  const auto a = Train(*exact, 60, 3e-3), b = Train(*rounded, 60, 3e-3);
  ASSERT_EQ(a.size(), b.size());
  EXPECT_NE(a.back().loss, b.back().loss);
  EXPECT_LT(a.back().loss, 0.8 * a.front().loss);
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i].loss, b[i].loss, 0.05 * a[i].loss) << "step " << i;
}

// Attention on a device may add in any order, so bits are not compared.
TEST_F(DeviceTest, ASavedStateGoesOn) {
  options_.run.model.gpt().dropout = 0.2;
  const auto straight = On("cuda");
  Train(*straight, 8, 3e-3);
  ReplicaState state;
  ASSERT_TRUE(straight->SaveState(state).ok());
  EXPECT_EQ(state.optimizer_steps, 8U);
  const std::vector<float> saved = Parameters(*straight);
  const auto resumed = On("cuda"), forgetful = On("cuda");
  for (TorchReplica* const replica : {resumed.get(), forgetful.get()}) {
    ASSERT_TRUE(replica->WriteFragment(WholeModel(replica->manifest()), saved).ok());
  }
  ASSERT_TRUE(resumed->LoadState(state).ok());
  ASSERT_TRUE(forgetful->Seek(state.samples_consumed).ok());
  EXPECT_EQ(resumed->samples_consumed(), straight->samples_consumed());
  const auto expected = Train(*straight, 4, 3e-3), found = Train(*resumed, 4, 3e-3);
  Train(*forgetful, 4, 3e-3);
  for (size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i].loss, expected[i].loss, 1e-4 * expected[i].loss);
  const double apart = Distance(Parameters(*resumed), Parameters(*straight));
  const double without = Distance(Parameters(*forgetful), Parameters(*straight));
  EXPECT_LT(apart, 0.02 * without) << "the moments matter";
  ReplicaState of_the_host;
  ASSERT_TRUE(On("cpu")->SaveState(of_the_host).ok());
  EXPECT_THAT(std::string(resumed->LoadState(of_the_host).message()), HasSubstr("random generator"));
}

TEST_F(DeviceTest, TheSameTokensAreLikeliest) {
  const auto host = On("cpu"), device = On("cuda");
  Train(*host, 100, 3e-3);
  ASSERT_TRUE(device->WriteFragment(WholeModel(device->manifest()), Parameters(*host)).ok());
  const std::vector<TokenId> prompt = {'t', 'h', 'e', ' ', 'q'};
  const auto text = [&](TorchReplica& replica) {
    std::string drawn;
    const absl::Status status =
        replica.Generate(prompt, {.tokens = 40, .sampling = {.temperature = 0}}, [&](TokenId token) {
          drawn.push_back(static_cast<char>(token));
          return true;
        });
    EXPECT_TRUE(status.ok()) << status;
    return drawn;
  };
  const std::string expected = text(*host);
  EXPECT_EQ(expected.size(), 40U);
  EXPECT_EQ(text(*device), expected);
}

TEST_F(DeviceTest, AStepThatIsNotFiniteIsNotTaken) {
  const auto replica = On("cuda");
  const FragmentLayout layout = WholeModel(replica->manifest());
  const std::vector<float> good = Parameters(*replica);
  std::vector<float> bad = good;
  bad[layout.slots[4].offset] = std::nanf("");
  ASSERT_TRUE(replica->WriteFragment(layout, bad).ok());
  EXPECT_EQ(replica->InnerStep(1e-3).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(replica->samples_consumed(), 0U);
  ASSERT_TRUE(replica->WriteFragment(layout, good).ok());
  EXPECT_EQ(Parameters(*replica), good);
  EXPECT_TRUE(replica->InnerStep(1e-3).ok());
}

TEST_F(DeviceTest, SaysWhichDevicesThereAre) {
  options_.device = "cuda:99";
  const absl::Status missing = CreateTorchReplica(options_).status();
  EXPECT_TRUE(absl::IsInvalidArgument(missing)) << missing;
  EXPECT_THAT(std::string(missing.message()),
              AllOf(HasSubstr("'cuda:99'"), HasSubstr("use one of them, auto or cpu")));
  EXPECT_EQ(ResolveDevice("auto").value(), "cuda:0");
  EXPECT_GT(HardwareOf("cuda:0").device_memory_bytes, uint64_t{1} << 30);
}

TEST_F(DeviceTest, AModelThatDoesNotFitIsRejectedWithTheRemedy) {
  options_.device = "cuda";
  options_.run.model.gpt().layers = 200;  // 650 GB of parameters
  options_.run.model.gpt().width = 8192;
  options_.run.model.gpt().heads = 64;
  const absl::Status status = CreateTorchReplica(options_).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("building the model"),
                                                   HasSubstr("out of memory"), HasSubstr("another device")));
}

TEST_F(DeviceTest, AStepThatDoesNotFitIsRejectedWithTheRemedy) {
  options_.device = "cuda";
  options_.run.inner.batch = 1u << 21;  // 34 million tokens
  const auto replica = On("cuda");
  const absl::Status status = replica->InnerStep(1e-3).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("out of memory"), HasSubstr("inner.batch"),
                                                   HasSubstr("recompute_activations")));
}

}  // namespace
}  // namespace atl
