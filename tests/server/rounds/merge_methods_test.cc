#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "tests/server/test_run.h"

// Every merge and outer optimizer through the coordinator: rounds are replayed from their records alone, with
// the same bits, whatever the order of arrival, the threads and the configuration of today.

namespace atl {
namespace {

struct Case {
  const char* name;
  MergeOptions merge;
  OuterOptions outer = {};
  CodecKind push = CodecKind::kFp32;
};

void PrintTo(const Case& tested, std::ostream* out) { *out << tested.name; }

constexpr OuterOptions kDelayed{
    .optimizer = OuterOptimizerKind::kDelayedNesterov, .delay = 3, .spread = 0.25};

const Case kCases[] = {
    {"guarded_mean", {.norm_guard = true}},
    {"rda", {.method = MergeMethod::kRda}},
    {"guarded_rda", {.method = MergeMethod::kRda, .norm_guard = true}},
    {"trimmed_mean", {.method = MergeMethod::kTrimmedMean, .trim = 0.25}},
    {"median", {.method = MergeMethod::kMedian, .norm_guard = true}},
    {"centered_clip", {.method = MergeMethod::kCenteredClip}},
    {"mean_and_delayed_nesterov", {}, kDelayed},
    {"centered_clip_and_delayed_nesterov",
     {.method = MergeMethod::kCenteredClip, .norm_guard = true},
     kDelayed},
    {"e3m0", {}, {}, CodecKind::kE3m0},
    {"int8_quantile_and_rda", {.method = MergeMethod::kRda}, {}, CodecKind::kInt8Quantile},
    {"topk_by_all", {}, {.optimizer = OuterOptimizerKind::kSgd, .learning_rate = 1}, CodecKind::kTopK64},
    {"topk_by_those_present",
     {.norm_guard = true, .sparse_average = SparseAverage::kPresent},
     {.optimizer = OuterOptimizerKind::kSgd, .learning_rate = 1},
     CodecKind::kTopK128Bf16},
};

float Start(size_t i) { return 0.5F + 0.01F * static_cast<float>(i % 13); }

// Different sizes and directions, so that every merge has something to do.
std::vector<float> DeltaOf(const MemberRef& worker, uint64_t base) {
  const auto nth = static_cast<float>(worker.worker[0] - 'a' + 1);
  return Fill([&](size_t i) {
    return 0.01F * nth * (1 + std::sin(static_cast<float>(i) * nth + static_cast<float>(base)));
  });
}

CoordinatorOptions OptionsOf(const Case& tested) {
  CoordinatorOptions options = SmallRun();
  options.run.workers = 4;
  options.run.round.start_workers = 4;
  options.run.merge = tested.merge;
  options.run.merge.weights = MergeWeighting::kTokens;
  options.run.outer = tested.outer;
  options.run.push_codec = tested.push;
  return options;
}

void Round(TestRun& run, std::vector<MemberRef> workers, uint64_t base, bool reversed = false) {
  const CodecKind codec = run.options().run.push_codec;
  if (reversed) std::reverse(workers.begin(), workers.end());
  for (const MemberRef& worker : workers) ASSERT_TRUE(run.Pull(worker).ok());
  for (const MemberRef& worker : workers) {
    const uint64_t tokens = 16 + 8 * static_cast<uint64_t>(worker.worker[0] - 'a');
    const auto pushed = run.Push(worker, base, DeltaOf(worker, base), {.tokens = tokens, .codec = codec});
    ASSERT_TRUE(pushed.ok()) << pushed.status();
  }
  ASSERT_TRUE(run.Pull(workers[0], base).ok());
}

class MergeMethods : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(All, MergeMethods, testing::ValuesIn(kCases),
                         [](const auto& tested) { return std::string(tested.param.name); });

TEST_P(MergeMethods, AreReplayedFromTheRecordWhateverIsConfiguredNow) {
  TestRun undisturbed(OptionsOf(GetParam()));
  const std::vector<MemberRef> reference = undisturbed.Begin({"a", "b", "c", "d"}, Fill(Start));
  for (uint64_t base = 0; base < 5; ++base) Round(undisturbed, reference, base);

  TestRun run(OptionsOf(GetParam()));
  const std::vector<MemberRef> workers = run.Begin({"a", "b", "c", "d"}, Fill(Start));
  for (uint64_t base = 0; base < 4; ++base) Round(run, workers, base);
  run.WaitForStored(4);
  run.faults().store = true;
  Round(run, workers, 4);  // committed and published; its tensors never reach the disk
  run.options().run.merge = {.weights = MergeWeighting::kUniform, .method = MergeMethod::kMedian};
  run.options().run.outer.learning_rate = 0.01;
  run.options().run.outer.momentum = 0;
  run.options().run.outer.delay = 2;
  run.options().config_bytes = "config-2";
  run.options().merge_threads = 1;
  const absl::Status restarted = run.Restart();
  ASSERT_TRUE(restarted.ok()) << restarted;
  EXPECT_LT(run.coordinator().GetStatus(0).fragments[0].stored, Version(5)) << "nothing was replayed";
  EXPECT_EQ(run.Published(workers[0], 4), undisturbed.Published(reference[0], 4));
}

TEST_P(MergeMethods, DoNotDependOnArrivalOrThreads) {
  std::vector<std::vector<float>> outcomes;
  for (const uint32_t threads : {1U, 2U, 4U}) {
    CoordinatorOptions options = OptionsOf(GetParam());
    options.merge_threads = threads;
    TestRun run(options);
    const std::vector<MemberRef> workers = run.Begin({"a", "b", "c", "d"}, Fill(Start));
    Round(run, workers, 0, threads == 2);
    Round(run, workers, 1, threads != 2);
    outcomes.push_back(run.Published(workers[0], 1));
  }
  EXPECT_EQ(outcomes[0], outcomes[1]);
  EXPECT_EQ(outcomes[0], outcomes[2]);
}

TEST_P(MergeMethods, ThatOverflowLeaveTheLargestOutUntilTheyDoNot) {
  CoordinatorOptions options = OptionsOf(GetParam());
  options.max_contribution_norm = std::numeric_limits<double>::infinity();
  options.run.outer.learning_rate = 50;
  TestRun run(options);
  EventCatcher events(&run.coordinator());
  const std::vector<MemberRef> workers = run.Begin({"a", "b", "c", "d"}, Fill(Start));
  for (const MemberRef& worker : workers) ASSERT_TRUE(run.Pull(worker).ok());
  for (const MemberRef& worker : workers) {
    // Two of four are beyond all bounds: no merge here stands that.
    const bool huge = worker.worker == "b" || worker.worker == "c";
    const auto pushed = run.Push(worker, 0, huge ? Fill([](size_t) { return 3e38F; }) : DeltaOf(worker, 0),
                                 {.tokens = 64, .codec = GetParam().push});
    ASSERT_TRUE(pushed.ok()) << pushed.status();
  }
  for (const float value : run.Published(workers[0], 0)) ASSERT_TRUE(std::isfinite(value));
  const auto rejected = events.WaitFor(EventKind::kContributionRefused);
  ASSERT_TRUE(rejected.has_value());
  EXPECT_TRUE(rejected->worker == "b" || rejected->worker == "c") << rejected->worker;
}

}  // namespace
}  // namespace atl
