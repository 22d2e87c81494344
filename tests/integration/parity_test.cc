// The whole path (processes, sockets, disk) against tests/reference/diloco_reference.py, plain PyTorch with
// no code of ours: same initial weights, same data order, two workers. Every committed version is read back
// from disk and compared.

#include <cmath>
#include <csignal>

#include "absl/strings/str_format.h"
#include "common/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/integration/cluster.h"
#include "tests/integration/reference.h"

namespace atl {
namespace {

constexpr uint32_t kRounds = 5;
constexpr uint32_t kInnerSteps = 10;

nlohmann::json ReferenceOptions(const Cluster& cluster) {
  return {{"tokens", cluster.PathOf("tokens")},
          {"layers", 2},
          {"heads", 2},
          {"width", 32},
          {"context", 32},
          {"vocabulary", 256},
          {"batch", 4},
          {"seed", 7},
          {"workers", 2},
          {"learning_rate", 0.003},
          {"warmup", 5},
          {"inner_steps", kInnerSteps},
          {"steps", kRounds * kInnerSteps},
          {"eval_batches", 4},
          {"threads", 1},
          {"initial", cluster.PathOf("initial.f32")},
          {"dump", cluster.PathOf("reference")}};
}

TEST(Parity, EveryOuterStepAgreesWithPlainPyTorch) {
  if (!HavePyTorch()) {
    GTEST_SKIP() << "the reference needs Debian's python3-torch (scripts/setup.sh installs it)";
  }
  auto created = Cluster::Create(TinyConfig({.workers = 2,
                                             .rounds = kRounds,
                                             .inner_steps = kInnerSteps,
                                             .checkpoint = "{keep_versions: 100, shards: 3}"}));
  ASSERT_TRUE(created.ok()) << created.status();
  Cluster& cluster = **created;
  ASSERT_TRUE(cluster.StartCoordinator().ok());
  ASSERT_TRUE(cluster.StartWorker("w0").ok());
  ASSERT_TRUE(cluster.StartWorker("w1").ok());
  const absl::Status finished = cluster.WaitForFinish(Seconds(120));
  ASSERT_TRUE(finished.ok()) << finished;
  const auto status = cluster.Status();
  ASSERT_TRUE(status.ok());
  cluster.coordinator().Signal(SIGTERM);
  ASSERT_EQ(cluster.coordinator().Wait(Seconds(30)), 0);
  const auto run = ReadRun(cluster.PathOf("coordinator"));
  ASSERT_TRUE(run.ok()) << run.status();
  const auto& versions = run->versions;
  ASSERT_EQ(versions.size(), kRounds + 1);

  const std::vector<float>& first = versions.at(0);
  const std::string initial(reinterpret_cast<const char*>(first.data()), first.size() * sizeof(float));
  ASSERT_TRUE(WriteFileAtomically(cluster.PathOf("initial.f32"), initial).ok());
  ASSERT_TRUE(CreateDirs(cluster.PathOf("reference")).ok());
  const auto result = RunReference(cluster, "diloco_reference.py", ReferenceOptions(cluster));
  ASSERT_TRUE(result.ok()) << result.status();

  EXPECT_EQ(RelativeError(first, ReadFloats(cluster.PathOf("reference/params_000.f32"))), 0.0);
  for (uint32_t version = 1; version <= kRounds; ++version) {
    const auto theirs = ReadFloats(cluster.PathOf(absl::StrFormat("reference/params_%03d.f32", version)));
    ASSERT_EQ(theirs.size(), versions.at(version).size());
    const double error = RelativeError(versions.at(version), theirs);
    // Two float32 programs drift apart by their rounding: 1e-5 after the first outer step, and AdamW's
    // division by the root of small second moments lets it grow a few times a round.
    EXPECT_LE(error, 1e-5 * std::pow(3.0, version - 1)) << "version " << version;
    printf("version %u: relative error %.2e\n", version, error);
  }
  EXPECT_NEAR(status->evaluations(status->evaluations_size() - 1).loss(), (*result)["loss"].get<double>(),
              1e-3);
}

}  // namespace
}  // namespace atl
