// The C++ trainer against tests/reference/diloco_reference.py: two replicas, plain mean, the core's Nesterov
// step, the same initial weights and data order; parameters are compared after each outer step. No server, no
// wire.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"
#include "common/file.h"
#include "core/outer_optimizer.h"
#include "core/schedule.h"
#include "tests/paths.h"
#include "tests/worker/torch/tiny_run.h"

namespace atl {
namespace {

constexpr uint32_t kWorkers = 2;

RunOptions ReferenceRun() {
  RunOptions run = testing::TinyRun();
  run.workers = kWorkers;
  run.rounds = 3;
  run.inner.steps = 10;
  run.inner.warmup_steps = 5;
  run.inner.accumulation = 2;
  run.inner.batch = 4;
  run.model.gpt().width = 64;
  run.model.gpt().context = 32;
  run.outer.learning_rate = 0.7;
  run.outer.momentum = 0.9;
  return run;
}

void WriteFloats(const std::string& path, const std::vector<float>& values) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(values.size() * 4));
}

std::vector<float> ReadFloats(const std::string& path) {
  const absl::StatusOr<std::string> bytes = ReadFile(path);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  if (!bytes.ok()) return {};
  std::vector<float> values(bytes->size() / 4);
  std::memcpy(values.data(), bytes->data(), bytes->size());
  return values;
}

double RelativeError(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double difference = 0, norm = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    difference += std::pow(double{a[i]} - b[i], 2);
    norm += std::pow(double{b[i]}, 2);
  }
  return std::sqrt(difference / norm);
}

// Runs the script; its dumped parameters are then in folder/dump.
void RunReference(const RunOptions& run, const std::string& folder, const std::string& tokens,
                  const std::string& initial) {
  nlohmann::json options = {{"tokens", tokens},
                            {"layers", run.model.gpt().layers},
                            {"heads", run.model.gpt().heads},
                            {"width", run.model.gpt().width},
                            {"context", run.model.gpt().context},
                            {"vocabulary", run.model.gpt().vocabulary},
                            {"batch", run.inner.batch},
                            {"accumulation", run.inner.accumulation},
                            {"seed", run.seed},
                            {"workers", run.workers},
                            {"learning_rate", run.inner.learning_rate},
                            {"warmup", run.inner.warmup_steps},
                            {"inner_steps", run.inner.steps},
                            {"steps", run.inner.steps * run.rounds},
                            {"outer_learning_rate", run.outer.learning_rate},
                            {"outer_momentum", run.outer.momentum},
                            {"initial", initial},
                            {"dump", JoinPath(folder, "dump")},
                            {"threads", 1}};
  const std::string file = JoinPath(folder, "options.json");
  std::ofstream(file) << options;
  const std::string command = absl::StrFormat("/usr/bin/python3 %s/tests/reference/diloco_reference.py %s %s",
                                              ATOLL_SOURCE_DIR, file, JoinPath(folder, "result.json"));
  ASSERT_EQ(std::system(command.c_str()), 0) << command << "\nThe script needs Debian's python3-torch.";
}

// One round of our own: every replica trains from theta; returns the mean pseudo-gradient.
std::vector<float> MeanPseudoGradient(const RunOptions& run, uint32_t round, const FragmentLayout& layout,
                                      const std::vector<float>& theta,
                                      std::vector<std::unique_ptr<TorchReplica>>& replicas) {
  std::vector<float> mean(theta.size(), 0.0f);
  const uint64_t committed = uint64_t{round} * run.inner.steps * run.tokens_per_step() * run.workers;
  for (auto& replica : replicas) {
    EXPECT_TRUE(replica->WriteFragment(layout, theta).ok());
    for (uint32_t step = 0; step < run.inner.steps; ++step) {
      const double position = SchedulePosition(run, TokensAtStep(run, committed, step, run.workers));
      const auto result = replica->InnerStep(LearningRateAt(run, position));
      EXPECT_TRUE(result.ok()) << result.status();
    }
    const std::vector<float> local = testing::Parameters(*replica);
    for (size_t i = 0; i < mean.size(); ++i)
      mean[i] += (theta[i] - local[i]) / static_cast<float>(run.workers);
  }
  return mean;
}

TEST(ReferenceTest, ParametersAgreeAfterEachOuterStep) {
  const RunOptions run = ReferenceRun();
  const std::string folder = JoinPath(::testing::TempDir(), "reference");
  ASSERT_TRUE(RemoveAll(folder).ok());
  ASSERT_TRUE(CreateDirs(folder).ok());
  TorchReplicaOptions options = testing::TinyReplica(testing::TinyDataset("reference_data", 60000));
  options.run = run;
  options.partitions = kWorkers;
  std::vector<std::unique_ptr<TorchReplica>> replicas;
  for (options.partition = 0; options.partition < kWorkers; ++options.partition) {
    auto replica = CreateTorchReplica(options);
    ASSERT_TRUE(replica.ok()) << replica.status();
    replicas.push_back(*std::move(replica));
  }
  std::vector<float> theta = testing::Parameters(*replicas[0]);
  const std::string initial = JoinPath(folder, "initial.f32");
  WriteFloats(initial, theta);
  RunReference(run, folder, options.dataset_folder, initial);
  if (HasFatalFailure()) return;

  // Rounding differs (order of sums), and Adam's division by sqrt(v) magnifies it where v is tiny, so the
  // difference may double with every round.
  const double allowed[] = {1e-5, 2e-5, 4e-5};
  const FragmentLayout layout = testing::WholeModel(replicas[0]->manifest());
  std::vector<float> momentum(theta.size(), 0.0f);
  for (uint32_t round = 0; round < run.rounds; ++round) {
    const std::vector<float> mean = MeanPseudoGradient(run, round, layout, theta, replicas);
    const std::span<float> state[] = {momentum};
    OuterStepRange(run.outer, round + 1, mean, theta, theta, state);
    const std::vector<float> expected =
        ReadFloats(JoinPath(folder, absl::StrFormat("dump/params_%03d.f32", round + 1)));
    const double error = RelativeError(theta, expected);
    RecordProperty("relative_error_" + std::to_string(round + 1), std::to_string(error));
    std::printf("outer step %u: relative error %.2e (allowed %.0e)\n", round + 1, error, allowed[round]);
    EXPECT_LE(error, allowed[round]) << "after outer step " << round + 1;
  }
  // The training moved the parameters by far more than they may differ.
  EXPECT_GT(RelativeError(theta, ReadFloats(initial)), 0.05);
}

}  // namespace
}  // namespace atl
