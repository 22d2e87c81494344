// Real workers train with the algorithms that parity_test.cc does not use. tests/reference/replay.py, plain
// PyTorch with no code of ours, repeats every step of the run: it takes the rounds from the records on disk,
// and trains each contribution again, in float64, from the run's own base. Bounds are multiples of what
// float32 changes of the same step in PyTorch.

#include <csignal>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <thread>

#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/cluster.h"
#include "tests/integration/reference.h"

namespace atl {
namespace {

/// The errors of two float32 programs that sum in different orders are of one size; the largest of a run
/// differ by less than this factor.
constexpr double kRoundingFactor = 4;
/// Of an outer step: every value is rounded to float32 some ten times, each time by 2^-24 of it at most.
constexpr double kOuterStepError = 10.0 / (1 << 24);
/// The losses of N = 8 trials are spread like Student's t with 7 degrees of freedom: the next one is farther
/// than six deviations away once in 1,500 times.
constexpr double kDeviations = 6;

struct Algorithm {
  uint32_t rounds = 6;
  uint32_t inner_steps = 10;
  std::string inner = {};  // after a comma
  std::string outer = "{optimizer: nesterov, learning_rate: 0.7, momentum: 0.9}";
  std::string round = "{deadline_s: 100, grace_s: 100, lease_s: 20, start_workers: 2}";
  std::string codec = "{push: fp32, pull: fp32, pull_delta: none}";
  std::string privacy = {};  // a section
};

/// Two workers with TinyConfig's model, and one learning rate for all steps.
std::string ConfigOf(const Algorithm& algorithm) {
  return absl::StrFormat(
      "run: {name: algorithm, workers: 2, rounds: %d, seed: 7}\n"
      "model:\n  gpt: {layers: 2, heads: 2, width: 32, context: 32, vocabulary: 256}\n"
      "data: {tokenizer: bytes, partitions: 2}\n"
      "inner: {steps: %d, learning_rate: 0.003, min_learning_rate_ratio: 1, warmup_steps: 0, batch: 4%s}\n"
      "outer: %s\nround: %s\ncodec: %s\nmerge: {weights: tokens}\nevaluation: {every: 0, batches: 4}\n"
      "checkpoint: {keep_versions: 100, shards: 2}\n%s",
      algorithm.rounds, algorithm.inner_steps, algorithm.inner, algorithm.outer, algorithm.round,
      algorithm.codec, algorithm.privacy);
}

/// Gives a process one part in `factor` of the time, as if it ran on a slower machine. In slices much shorter
/// than a round: one of 20 ms would else fall into one slice, or into the other.
class Slowed {
 public:
  Slowed(Process* process, int factor) : process_(process), factor_(factor), thread_([this] { Run(); }) {}
  ~Slowed() {
    over_ = true;
    thread_.join();
    process_->Signal(SIGCONT);
  }

 private:
  static constexpr std::chrono::milliseconds kSlice{4};
  void Run() {
    while (!over_) {
      process_->Signal(SIGSTOP);
      std::this_thread::sleep_for((factor_ - 1) * kSlice);
      process_->Signal(SIGCONT);
      std::this_thread::sleep_for(kSlice);
    }
  }
  Process* const process_;
  const int factor_;
  std::atomic<bool> over_{false};
  std::thread thread_;
};

double LargestOf(const nlohmann::json& result, const char* what) {
  double largest = 0;
  for (const auto& round : result["rounds"]) {
    for (const auto& one : round["contributions"]) largest = std::max(largest, one[what].get<double>());
  }
  return largest;
}

class AlgorithmsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!HavePyTorch()) {
      GTEST_SKIP() << "the reference needs Debian's python3-torch (scripts/setup.sh installs it)";
    }
  }

  /// Trains to the end; sets `run` and `loss`. Worker w1 gets one part in `slow_factor` of the time.
  void Train(const Algorithm& algorithm, int slow_factor = 1) {
    auto created = Cluster::Create(ConfigOf(algorithm));
    ASSERT_TRUE(created.ok()) << created.status();
    cluster = *std::move(created);
    ASSERT_TRUE(cluster->StartCoordinator().ok());
    // The run begins with the second worker, so that the slow one is there from the first round on.
    ASSERT_TRUE(cluster->StartWorker("w1").ok());
    const auto joined = [](const v1::GetStatusReply& status) { return status.live_trainers() == 1; };
    const absl::Status first = cluster->WaitUntil("w1 to join", Seconds(60), joined);
    ASSERT_TRUE(first.ok()) << first;
    {
      std::optional<Slowed> slowed;
      if (slow_factor > 1) slowed.emplace(&cluster->worker("w1"), slow_factor);
      ASSERT_TRUE(cluster->StartWorker("w0").ok());
      const absl::Status finished = cluster->WaitForFinish(Seconds(120));
      ASSERT_TRUE(finished.ok()) << finished;
    }
    const auto status = cluster->Status();
    ASSERT_TRUE(status.ok()) << status.status();
    ASSERT_GE(status->evaluations_size(), 2);
    loss = status->evaluations(status->evaluations_size() - 1).loss();
    EXPECT_LT(loss, status->evaluations(0).loss() - 0.3) << "it learns";
    cluster->coordinator().Signal(SIGTERM);
    ASSERT_EQ(cluster->coordinator().Wait(Seconds(30)), 0);
    auto read = ReadRun(cluster->PathOf("coordinator"));
    ASSERT_TRUE(read.ok()) << read.status();
    run = *std::move(read);
    ASSERT_GE(run.rounds.size(), algorithm.rounds);
    steps = algorithm.inner_steps;
  }

  /// Runs the reference; checks what holds for every algorithm, and returns the result for the rest.
  void Replay(const nlohmann::json& algorithm, nlohmann::json& result) {
    auto options = ReplayOptions(*cluster, run);
    ASSERT_TRUE(options.ok()) << options.status();
    options->update(algorithm);
    (*options)["inner_steps"] = steps;
    auto replayed = RunReference(*cluster, "replay.py", *options);
    ASSERT_TRUE(replayed.ok()) << replayed.status();
    result = *std::move(replayed);
    double worst = 0;
    for (const auto& round : result["rounds"]) worst = std::max(worst, round["error"].get<double>());
    EXPECT_LE(worst, kOuterStepError) << "a version is not the outer step of its contributions";
    const double rounding = LargestOf(result, "rounding");
    // An inner step that is left out or done twice changes a contribution by about 1 / steps of its norm.
    EXPECT_LE(kRoundingFactor * rounding, 0.5 / steps) << "the bound would hide a wrong inner step";
    const std::vector<double> losses = result["losses"];
    const double mean = std::accumulate(losses.begin(), losses.end(), 0.0) / losses.size();
    double squares = 0;
    for (const double one : losses) squares += (one - mean) * (one - mean);
    const double deviation = std::sqrt(squares / (losses.size() - 1));
    printf("outer steps within %.1e (bound %.1e); rounding of a contribution %.1e\n", worst, kOuterStepError,
           rounding);
    printf("loss %.5f; PyTorch's %.5f, deviation %.5f (bound %.5f)\n", loss, mean, deviation,
           kDeviations * deviation);
    EXPECT_NEAR(loss, mean, kDeviations * deviation);
    EXPECT_NEAR(loss, result["loss"].get<double>(), 1e-5) << "the evaluation itself";
  }

  /// For contributions that are sent as they are.
  void CompareContributions(const nlohmann::json& result) const {
    const double bound = kRoundingFactor * LargestOf(result, "rounding");
    const double error = LargestOf(result, "delta_error");
    printf("contributions within %.1e (bound %.1e)\n", error, bound);
    EXPECT_LE(error, bound);
  }

  /// Their losses, as recorded. A loss is a float32: half a unit of its last place comes with it.
  void CompareLosses(const nlohmann::json& result) const {
    double worst = 0;
    for (size_t i = 0; i < run.rounds.size(); ++i) {
      for (size_t j = 0; j < run.rounds[i].contributions.size(); ++j) {
        const double theirs = result["rounds"][i]["contributions"][j]["loss"];
        worst = std::max(worst, std::abs(run.rounds[i].contributions[j].mean_loss - theirs));
      }
    }
    const double bound = kRoundingFactor * LargestOf(result, "loss_rounding") + 5e-7;
    printf("losses within %.1e (bound %.1e)\n", worst, bound);
    EXPECT_LE(worst, bound);
  }

  std::unique_ptr<Cluster> cluster;
  RunOnDisk run;
  double loss = 0;
  uint32_t steps = 0;
};

TEST_F(AlgorithmsTest, FreeRoundsWithDelayedNesterov) {
  // Many short rounds and a worker that falls behind by more than a commit takes, so that its contributions
  // are stale; and none is refused for that.
  Train({.rounds = 30,
         .inner_steps = 5,
         .outer = "{optimizer: delayed_nesterov, learning_rate: 0.7, momentum: 0.9, delay: 2, spread: 0.25}",
         .round = "{mode: async, minimum: 1, staleness_limit: 1000, deadline_s: 100, lease_s: 20, "
                  "start_workers: 2}"},
        /*slow_factor=*/6);
  ASSERT_FALSE(HasFailure());
  const bool stale = std::ranges::any_of(run.rounds, [](const RoundRecord& round) {
    return std::ranges::any_of(round.contributions, [&](const Contribution& one) {
      return one.key.base.value() + 1 < round.version.value();
    });
  });
  EXPECT_TRUE(stale) << "the slow worker's contributions have a base before the head; w1's log:\n"
                     << cluster->Log("w1");
  const nlohmann::json right = {
      {"outer_optimizer", "delayed_nesterov"}, {"outer_delay", 2}, {"outer_spread", 0.25}};
  nlohmann::json result;
  ASSERT_NO_FATAL_FAILURE(Replay(right, result));
  CompareContributions(result);
  CompareLosses(result);
}

TEST_F(AlgorithmsTest, InnerStepsByMeasuredPace) {
  Train({.rounds = 8, .inner_steps = 12, .inner = ", pace: adaptive"}, /*slow_factor=*/2);
  ASSERT_FALSE(HasFailure());
  const bool paced = std::ranges::any_of(run.rounds, [](const RoundRecord& round) {
    return round.contributions.size() == 2 &&
           round.contributions[0].steps >= round.contributions[1].steps + 3;
  });
  EXPECT_TRUE(paced) << "the worker that gets half of the time takes fewer steps";
  nlohmann::json result;
  ASSERT_NO_FATAL_FAILURE(Replay(nlohmann::json::object(), result));
  CompareContributions(result);
  CompareLosses(result);
}

TEST_F(AlgorithmsTest, LoCosErrorFeedback) {
  Train({.rounds = 8,
         .codec = "{push: int4, pull: fp32, pull_delta: none, error_feedback: true, error_feedback_form: "
                  "moving_average, error_feedback_beta: 0.8, error_feedback_reset: 3}"});
  ASSERT_FALSE(HasFailure());
  const nlohmann::json right = {{"push", "int4"}, {"beta", 0.8}, {"feedback_reset", 3}};
  nlohmann::json result;
  ASSERT_NO_FATAL_FAILURE(Replay(right, result));
  CompareLosses(result);
  const double other_levels = LargestOf(result, "other_levels");
  const double bound = kRoundingFactor * LargestOf(result, "levels_rounding");
  printf("other levels %.5f (bound %.5f)\n", other_levels, bound);
  EXPECT_LE(other_levels, bound);
  // The comparison tells LoCo from other error feedback.
  for (const char* const other : {"beta", "feedback_reset"}) {
    nlohmann::json wrong = right;
    wrong[other] = 0;
    wrong["trials"] = 0;
    auto options = ReplayOptions(*cluster, run);
    ASSERT_TRUE(options.ok()) << options.status();
    options->update(wrong);
    const auto differs = RunReference(*cluster, "replay.py", *options);
    ASSERT_TRUE(differs.ok()) << differs.status();
    printf("without %s: other levels %.5f\n", other, LargestOf(*differs, "other_levels"));
    EXPECT_GT(LargestOf(*differs, "other_levels"), 10 * bound) << "without " << other;
  }
}

TEST_F(AlgorithmsTest, PrivacyWithNoise) {
  constexpr double kClip = 0.5;
  constexpr double kNoise = 0.004;
  Train({.privacy = absl::StrFormat("privacy: {clip_norm: %g, noise_multiplier: %g, delta: 1e-5}\n", kClip,
                                    kNoise)});
  ASSERT_FALSE(HasFailure());
  for (const RoundRecord& round : run.rounds) {
    for (const Contribution& one : round.contributions) EXPECT_EQ(one.mean_loss, 0) << "is not told";
  }
  nlohmann::json result;
  ASSERT_NO_FATAL_FAILURE(Replay({{"privacy_clip", kClip}, {"noise_multiplier", kNoise}}, result));
  const double clipping = kClip * LargestOf(result, "rounding");  // PyTorch's own error of the clipped push
  for (const auto& round : result["rounds"]) {
    for (const auto& one : round["contributions"]) {
      const auto& noise = one["noise"];
      EXPECT_GT(noise["norm"].get<double>(), kClip) << "clipping is tried";
      const double n = noise["values"];
      const double sigma = kNoise * kClip;
      const double rounding = kRoundingFactor * clipping / std::sqrt(n);
      // Five standard errors of each estimate from n independent draws: once in two million.
      EXPECT_NEAR(noise["deviation"].get<double>(), sigma, 5 * sigma / std::sqrt(2 * n) + rounding) << noise;
      EXPECT_NEAR(noise["mean"].get<double>(), 0, 5 * sigma / std::sqrt(n) + rounding) << noise;
      EXPECT_NEAR(noise["correlation"].get<double>(), 0, 5 / std::sqrt(n) + rounding / sigma) << noise;
    }
  }
}

}  // namespace
}  // namespace atl
