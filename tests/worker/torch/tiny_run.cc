#include "tests/worker/torch/tiny_run.h"

#include <gtest/gtest.h>

#include <fstream>

#include "common/file.h"
#include "worker/data/tokenize/tokenize.h"

namespace atl::testing {

RunOptions TinyRun() {
  RunOptions run;
  run.name = "tiny";
  run.workers = 1;
  run.rounds = 4;
  run.seed = 7;
  run.model = {.layers = 2, .heads = 2, .width = 32, .context = 16, .vocabulary = 256};
  run.data.tokenizer = "bytes";
  run.data.partitions = 1;
  run.inner.steps = 10;
  run.inner.learning_rate = 1e-3;
  run.inner.batch = 8;
  return run;
}

std::string TinyDataset(const std::string& name, size_t bytes) {
  const std::string folder = JoinPath(::testing::TempDir(), name);
  EXPECT_TRUE(RemoveAll(folder).ok());
  std::string text;
  for (uint64_t i = 0; text.size() < bytes; ++i) {
    text += "line " + std::to_string(i * 7919 % 1000) + ": the quick brown fox jumps over the lazy dog\n";
  }
  const std::string file = folder + ".txt";
  std::ofstream(file) << text;
  const ByteTokenizer tokenizer;
  const SystemClock clock{};
  const auto made = Tokenize(tokenizer, {.inputs = {file}, .folder = folder}, clock, {});
  EXPECT_TRUE(made.ok()) << made.status();
  return folder;
}

TorchReplicaOptions TinyReplica(const std::string& dataset_folder) {
  TorchReplicaOptions options;
  options.run = TinyRun();
  options.device = "cpu";
  options.threads = 1;
  options.dataset_folder = dataset_folder;
  return options;
}

FragmentLayout WholeModel(const Manifest& manifest) { return PlanFragments(manifest, 1).value()[0]; }

std::vector<float> Parameters(Replica& replica) {
  const FragmentLayout layout = WholeModel(replica.manifest());
  std::vector<float> values(layout.elements);
  const absl::Status status = replica.ReadFragment(layout, values);
  EXPECT_TRUE(status.ok()) << status;
  return values;
}

}  // namespace atl::testing
