// The whole path (processes, sockets, disk) against tests/reference/diloco_reference.py, plain PyTorch with
// no code of ours: same initial weights, same data order, two workers. Every committed version is read back
// from disk and compared.

#include <signal.h>
#include <unistd.h>

#include <cmath>
#include <cstring>

#include "absl/strings/str_format.h"
#include "common/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "storage/rocksdb/rocksdb_store.h"
#include "tests/integration/cluster.h"

namespace atoll {
namespace {

constexpr uint32_t kRounds = 5;
constexpr uint32_t kInnerSteps = 10;

std::vector<float> ReadFloats(const std::string& path) {
  const std::string bytes = ReadFile(path).value_or("");
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

double RelativeError(const std::vector<float>& ours, const std::vector<float>& theirs) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < ours.size(); ++i) {
    difference += std::pow(static_cast<double>(ours[i]) - theirs[i], 2);
    norm += std::pow(static_cast<double>(theirs[i]), 2);
  }
  return std::sqrt(difference / norm);
}

/// Every version of the only fragment, straight from the data directory.
std::vector<std::vector<float>> ReadVersions(const std::string& data_dir) {
  std::vector<std::vector<float>> versions;
  const auto store = OpenRocksDbStore({.data_dir = data_dir, .create_if_missing = false});
  EXPECT_TRUE(store.ok()) << store.status();
  if (!store.ok()) return versions;
  const auto recovery = (*store)->Recover();
  EXPECT_TRUE(recovery.ok() && recovery->has_value());
  const auto layouts = PlanFragments(*(*recovery)->manifest, 1);
  for (uint64_t version = 0; version <= (*recovery)->fragments[0].stored.value(); ++version) {
    auto tensors = (*store)->ReadVersion((*layouts)[0], Version(version));
    EXPECT_TRUE(tensors.ok()) << tensors.status();
    if (tensors.ok()) versions.push_back(std::move(tensors->parameters));
  }
  return versions;
}

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
  if (access("/usr/bin/python3", X_OK) != 0 ||
      RunToEnd({"/usr/bin/python3", "-c", "import torch, numpy"}, Seconds(60)).exit_code != 0) {
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
  const std::vector<std::vector<float>> versions = ReadVersions(cluster.PathOf("coordinator"));
  ASSERT_EQ(versions.size(), kRounds + 1);

  const std::string initial(reinterpret_cast<const char*>(versions[0].data()),
                            versions[0].size() * sizeof(float));
  ASSERT_TRUE(WriteFileAtomically(cluster.PathOf("initial.f32"), initial).ok());
  ASSERT_TRUE(WriteFileAtomically(cluster.PathOf("options.json"), ReferenceOptions(cluster).dump()).ok());
  ASSERT_TRUE(CreateDirs(cluster.PathOf("reference")).ok());
  const Finished reference =
      RunToEnd({"/usr/bin/python3", std::string(ATOLL_SOURCE_DIR) + "/tests/reference/diloco_reference.py",
                cluster.PathOf("options.json"), cluster.PathOf("result.json")},
               Seconds(120));
  ASSERT_EQ(reference.exit_code, 0) << reference.output;

  EXPECT_EQ(RelativeError(versions[0], ReadFloats(cluster.PathOf("reference/params_000.f32"))), 0.0);
  for (uint32_t version = 1; version <= kRounds; ++version) {
    const auto theirs = ReadFloats(cluster.PathOf(absl::StrFormat("reference/params_%03d.f32", version)));
    ASSERT_EQ(theirs.size(), versions[version].size());
    const double error = RelativeError(versions[version], theirs);
    // Two float32 programs drift apart by their rounding: 1e-5 after the first outer step, and AdamW's
    // division by the root of small second moments lets it grow a few times a round.
    EXPECT_LE(error, 1e-5 * std::pow(3.0, version - 1)) << "version " << version;
    printf("version %u: relative error %.2e\n", version, error);
  }
  const auto result = nlohmann::json::parse(ReadFile(cluster.PathOf("result.json")).value_or("{}"));
  EXPECT_NEAR(status->evaluations(status->evaluations_size() - 1).loss(), result["loss"].get<double>(), 1e-3);
}

}  // namespace
}  // namespace atoll
