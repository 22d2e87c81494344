// What the coordinator and the workers compute in runs with faults, held against what was recorded once
// (docs/internals/testing.md, "Recorded runs").
#include <unistd.h>

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/file.h"
#include "gtest/gtest.h"
#include "tests/guard/seeded_run.h"
#include "tests/paths.h"

namespace atl {
namespace {

// The learning rate is constant: a cosine differs between C libraries.
constexpr char kBlocking[] =
    "run: {name: guard, workers: 4, rounds: 25}\n"
    "model: {gpt: {layers: 1, heads: 1, width: 8, context: 8, vocabulary: 256}}\n"
    "data: {tokenizer: bytes, mode: shared, partitions: 6}\n"
    "inner: {steps: 4, learning_rate: 0.1, min_learning_rate_ratio: 1, warmup_steps: 0, batch: 3}\n"
    "outer: {learning_rate: 0.7, momentum: 0.9}\n"
    "round: {deadline_s: 600000, lease_s: 10}\n"
    "codec: {push: e3m0, pull_delta: int8}\n";
constexpr char kOverlapped[] =
    "run: {name: guard, workers: 4, rounds: 25}\n"
    "model: {gpt: {layers: 1, heads: 1, width: 8, context: 8, vocabulary: 256}}\n"
    "data: {tokenizer: bytes, mode: shared, partitions: 6}\n"
    "inner: {steps: 6, learning_rate: 0.1, min_learning_rate_ratio: 1, warmup_steps: 0, batch: 3}\n"
    "outer: {learning_rate: 0.7, momentum: 0.8}\n"
    "sync: {mode: overlapped, fragments: 2, delay_steps: 2, answer: blend, alpha: 0.5}\n"
    "round: {deadline_s: 600000, lease_s: 10}\n"
    "codec: {push: int8, pull_delta: int8}\n";
constexpr char kAsync[] =
    "run: {name: guard, workers: 4, rounds: 20}\n"
    "model: {gpt: {layers: 1, heads: 1, width: 8, context: 8, vocabulary: 256}}\n"
    "data: {tokenizer: bytes, mode: shared, partitions: 6}\n"
    "inner: {steps: 4, learning_rate: 0.1, min_learning_rate_ratio: 1, warmup_steps: 0, batch: 3}\n"
    "outer: {optimizer: delayed_nesterov, learning_rate: 0.5, momentum: 0.9, delay: 4}\n"
    "round: {mode: async, staleness_limit: 8, deadline_s: 600000, lease_s: 10}\n"
    "codec: {push: int4, pull_delta: none}\n";

struct Recorded {
  std::string name;
  const char* yaml;
  uint64_t seed;
};

std::vector<Recorded> Runs() {
  std::vector<Recorded> runs;
  for (uint64_t seed = 1; seed <= 7; ++seed) {
    runs.push_back({absl::StrCat("blocking_", seed), kBlocking, seed});
    runs.push_back({absl::StrCat("overlapped_", seed), kOverlapped, 100 + seed});
    if (seed <= 6) runs.push_back({absl::StrCat("async_", seed), kAsync, 200 + seed});
  }
  return runs;
}

std::map<std::string, std::string> Expected() {
  std::map<std::string, std::string> lines;
  const std::string text = ReadFile(ATOLL_SOURCE_DIR "/tests/guard/seeded_runs.txt").value_or("");
  for (const auto& line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(line, absl::MaxSplits(' ', 1));
    lines.insert(parts);
  }
  return lines;
}

/// Two checkouts may run this test at once.
std::string FolderOf(const std::string& name) {
  return JoinPath(::testing::TempDir(), absl::StrCat("guard_", getpid(), "_", name));
}

void PrintTo(const Recorded& recorded, std::ostream* out) { *out << recorded.name; }

class SeededRunsTest : public ::testing::TestWithParam<Recorded> {};

TEST_P(SeededRunsTest, ComputeWhatWasRecorded) {
  const Recorded& recorded = GetParam();
  SeededRun run(recorded.yaml, recorded.seed, FolderOf(recorded.name));
  const absl::Status finished = run.Run();
  ASSERT_TRUE(finished.ok()) << finished;
  const auto trace = run.Trace();
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(Expected()[recorded.name], trace->Line()) << "new: " << recorded.name << " " << trace->Line();
}

INSTANTIATE_TEST_SUITE_P(Modes, SeededRunsTest, ::testing::ValuesIn(Runs()),
                         [](const auto& test) { return test.param.name; });

TEST(SeededRunsTest, AnotherSeedComputesSomethingElse) {
  std::string lines[2];
  for (uint64_t seed : {uint64_t{1}, uint64_t{2}}) {
    SeededRun run(kBlocking, seed, FolderOf("other"));
    ASSERT_TRUE(run.Run().ok());
    lines[seed - 1] = run.Trace()->versions;
  }
  EXPECT_NE(lines[0], lines[1]);
}

}  // namespace
}  // namespace atl
