// Sparse contributions with error feedback over real sockets: every version of four workers is that of a
// computation by hand, for both ways of averaging what only some of them send (docs/reference/outer_step.md).
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "core/codec.h"
#include "core/error_feedback.h"
#include "core/fragment_plan.h"
#include "core/sparse_codec.h"
#include "gtest/gtest.h"
#include "tests/integration/island.h"

namespace atl {
namespace {

constexpr int kWorkers = 4;
constexpr int kRounds = 8;
constexpr int kInnerSteps = 3;
constexpr float kInnerRate = 0.1F;
constexpr double kBeta = 0.9;

struct SparseCase {
  CodecKind codec;
  SparseAverage average;
};

std::string NameOf(const SparseCase& one) {
  return std::string(CodecName(one.codec)) + (one.average == SparseAverage::kAll ? "_all" : "_present");
}

std::string Yaml(const SparseCase& one) {
  return absl::StrFormat(
      "run: {name: sparse-test, workers: %d, rounds: %d}\n"
      "model: {gpt: {layers: 1, heads: 1, width: 8, context: 8, vocabulary: 256}}\n"
      "data: {tokenizer: bytes, mode: shared}\n"
      "inner: {steps: %d, learning_rate: 0.1, min_learning_rate_ratio: 1, batch: 3}\n"
      "outer: {optimizer: sgd, learning_rate: 1}\n"
      "merge: {sparse_average: %s}\n"
      "round: {deadline_s: 60, lease_s: 5}\n"
      "codec: {push: %s, pull_delta: none, error_feedback_beta: %g}\n",
      kWorkers, kRounds, kInnerSteps, one.average == SparseAverage::kAll ? "all" : "present",
      std::string(CodecName(one.codec)), kBeta);
}

/// Workers want different things, and each of them is surest of other values: so they send different ones.
float Target(int worker, size_t tensor, size_t i) {
  const auto phase = static_cast<float>(i * static_cast<size_t>(2 * worker + 3) + 11 * tensor);
  return 2 + static_cast<float>(worker) * std::sin(phase) + 3 * std::cos(0.7F * phase);
}

/// The run in one thread, tensor by tensor as the replicas have them.
class ByHand {
 public:
  explicit ByHand(const SparseCase& one)
      : one_(one), layout_(PlanFragments(FakeReplica::MakeManifest(), 1)->front()), theta_(layout_.elements) {
    FakeReplica initial(0);
    EXPECT_TRUE(initial.ReadFragment(layout_, theta_).ok());
    for (int w = 0; w < kWorkers; ++w) feedback_.emplace_back(codec(), kBeta, layout_.elements);
  }

  void Round() {
    std::vector<float> sum(theta_.size());
    std::vector<int> holders(theta_.size());
    for (int w = 0; w < kWorkers; ++w) Contribute(w, sum, holders);
    for (size_t i = 0; i < theta_.size(); ++i) {
      const int by = one_.average == SparseAverage::kAll ? kWorkers : std::max(holders[i], 1);
      theta_[i] -= sum[i] / static_cast<float>(by);
      differently_ += holders[i] > 0 && holders[i] < kWorkers;
    }
  }

  float value(size_t tensor, size_t i) const { return theta_[layout_.slots[tensor].offset + i]; }
  /// Values that some workers sent and others did not.
  int differently() const { return differently_; }

 private:
  const Codec& codec() const { return CodecFor(one_.codec); }

  void Contribute(int worker, std::vector<float>& sum, std::vector<int>& holders) {
    std::vector<float> delta(theta_.size());
    for (const TensorSlot& slot : layout_.slots) {
      for (size_t i = 0; i < slot.elements; ++i) {
        float local = theta_[slot.offset + i];
        for (int step = 0; step < kInnerSteps; ++step)
          local -= kInnerRate * (local - Target(worker, slot.tensor, i));
        delta[slot.offset + i] = theta_[slot.offset + i] - local;
      }
    }
    std::vector<std::byte> payload(codec().EncodedSize(delta.size()));
    EXPECT_TRUE(feedback_[static_cast<size_t>(worker)].Encode(delta, payload).ok());
    HeldValues held;
    codec().sparse()->ReadBlock(payload, delta.size(), 0, held);
    for (size_t i = 0; i < held.count; ++i) {
      sum[held.positions[i]] += held.values[i];
      ++holders[held.positions[i]];
    }
  }

  const SparseCase one_;
  const FragmentLayout layout_;
  std::vector<float> theta_;
  std::vector<ErrorFeedback> feedback_;
  int differently_ = 0;
};

class SparseRoundsTest : public ::testing::TestWithParam<SparseCase> {};

TEST_P(SparseRoundsTest, AreThoseOfDirectComputation) {
  Island island(Yaml(GetParam()));
  std::vector<std::unique_ptr<WorkerThread>> workers;
  for (int w = 0; w < kWorkers; ++w) {
    workers.push_back(std::make_unique<WorkerThread>(
        island, absl::StrFormat("worker-%d", w), 0.0F, Duration(0), [w](FakeReplica& replica) {
          replica.target_of = [w](size_t tensor, size_t i) { return Target(w, tensor, i); };
        }));
  }
  for (const auto& worker : workers) {
    const WorkerEnd end = worker->Join();
    ASSERT_EQ(end.code, ExitCode::kOk) << end.status;
  }
  ByHand by_hand(GetParam());
  for (int round = 0; round < kRounds; ++round) by_hand.Round();
  EXPECT_GT(by_hand.differently(), 10 * kRounds) << "else both averages are the same";
  int moved = 0;
  for (const size_t tensor : {0, 1}) {
    const std::vector<float>& values = workers[0]->replica().tensor(tensor);
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_NEAR(values[i], by_hand.value(tensor, i), 2e-5F) << "tensor " << tensor << ", value " << i;
      moved += values[i] != (tensor == 0 ? 1.0F : 2.0F);
      for (const auto& worker : workers) ASSERT_EQ(worker->replica().tensor(tensor)[i], values[i]);
    }
  }
  EXPECT_GT(moved, 100) << "what is not sent in one round is in another: 12 or 24 values a round and worker";
}

INSTANTIATE_TEST_SUITE_P(Codecs, SparseRoundsTest,
                         ::testing::Values(SparseCase{CodecKind::kTopK64, SparseAverage::kAll},
                                           SparseCase{CodecKind::kTopK64, SparseAverage::kPresent},
                                           SparseCase{CodecKind::kTopK128, SparseAverage::kAll},
                                           SparseCase{CodecKind::kTopK128, SparseAverage::kPresent}),
                         [](const auto& test) { return NameOf(test.param); });

}  // namespace
}  // namespace atl
