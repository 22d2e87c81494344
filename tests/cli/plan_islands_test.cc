// `plan --ranks`: a run whose workers are islands.
#include <string>

#include "absl/strings/str_join.h"
#include "cli/config_advice.h"
#include "cli/plan.h"
#include "common/human.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/cli/atollctl.h"
#include "tests/paths.h"

namespace atl {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Json = nlohmann::json;

constexpr uint64_t kStepTokens = 512;  // 4 sequences of 128
constexpr uint32_t kSteps = 10;

/// 16 ranks: 2 islands of 8.
RunOptions Islands() {
  RunOptions run;
  run.name = "islands";
  run.workers = 16;
  run.rounds = 100;
  run.round.start_workers = 2;
  run.model = {.layers = 4, .heads = 4, .width = 256, .context = 128, .vocabulary = 5000};
  run.inner.steps = kSteps;
  run.inner.batch = 4;
  run.push_codec = CodecKind::kE3m0;
  run.pull_delta = CodecKind::kE3m0;
  run.evaluation_every = 0;
  return run;
}

RunPlan Plan(const RunOptions& run, const PlanAssumptions& assumptions) {
  const auto plan = MakePlan(run, assumptions);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.value_or(RunPlan());
}

std::string Refusal(const RunOptions& run, const PlanAssumptions& assumptions) {
  const absl::Status status = MakePlan(run, assumptions).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  return std::string(status.message());
}

std::string Text(const RunPlan& plan) { return absl::StrJoin(RenderPlan(plan), "\n"); }

TEST(PlanIslands, RunWorkersCountsTheRanksOfAllIslands) {
  const RunPlan plan = Plan(Islands(), {.ranks = 8});
  EXPECT_EQ(plan.assumptions.workers, 2u);
  EXPECT_EQ(plan.round_tokens, uint64_t{16} * kSteps * kStepTokens);
  EXPECT_EQ(plan.rounds, 100u);
  EXPECT_THAT(plan.warnings, IsEmpty());
  EXPECT_THAT(Text(plan),
              AllOf(HasSubstr("a round of 2 workers of 8 ranks at"), ContainsRegex("tokens +81.9k")));
}

TEST(PlanIslands, MoreRanksSpendTheTokensInFewerRounds) {
  RunOptions run = Islands();
  run.workers = 2;
  run.rounds = 100;
  run.checkpoint_every = 10;
  run.checkpoint_keep = 50;
  const PlanAssumptions islands{.workers = 2, .ranks = 8, .step_s = 1};
  const RunPlan plan = Plan(run, islands);
  EXPECT_EQ(plan.rounds, 13u) << "an eighth of 100, rounded up";
  EXPECT_EQ(plan.total_tokens, uint64_t{200} * kSteps * kStepTokens)
      << "which the number of ranks does not change";
  EXPECT_EQ(plan.disk.checkpoints, 1u);
  EXPECT_THAT(
      plan.warnings,
      ElementsAre("run.workers is 2, but there are 16 ranks (2 islands of 8): the run ends after 13 rounds, "
                  "not after run.rounds, which is 100. Set run.workers: 16 and round.start_workers: 2"));
  EXPECT_THAT(Text(plan),
              AllOf(HasSubstr("13 rounds of 10 inner steps"),
                    HasSubstr("1.02M are spent after 13 rounds; run.rounds is 100"),
                    HasSubstr("the whole run: " + HumanDuration(Seconds(13 * plan.time.round_s())))));
  const Json json = Json::parse(PlanToJson(plan));
  EXPECT_EQ(json["rounds"], 13);
  EXPECT_EQ(json["round_tokens"], uint64_t{16} * kSteps * kStepTokens);
  EXPECT_EQ(json["assumptions"]["ranks"], 8);
}

TEST(PlanIslands, FewerRanksThanConfiguredTakeMoreRounds) {
  const RunPlan plan = Plan(Islands(), {.workers = 2, .ranks = 2});
  EXPECT_EQ(plan.rounds, 400u);
  EXPECT_THAT(absl::StrJoin(plan.warnings, "\n"), HasSubstr("the run ends after 400 rounds, not after"));
}

TEST(PlanIslands, AnIslandExchangesAsOneWorker) {
  const RunPlan alone = Plan(Islands(), {.workers = 2, .step_s = 1});
  const RunPlan islands = Plan(Islands(), {.workers = 2, .ranks = 8, .step_s = 1});
  EXPECT_EQ(islands.push_bytes, alone.push_bytes);
  EXPECT_EQ(islands.pull_bytes, alone.pull_bytes);
  EXPECT_EQ(islands.time.round_s(), alone.time.round_s());
  EXPECT_EQ(islands.coordinator.peak(), alone.coordinator.peak());
  EXPECT_EQ(islands.disk.peak(), alone.disk.peak());
}

TEST(PlanIslands, TheFirstRoundWaitsForIslands) {
  RunOptions run = Islands();
  run.round.start_workers = 16;
  EXPECT_THAT(Plan(run, {.ranks = 8}).warnings,
              ElementsAre("the first round waits for 16 workers (round.start_workers), but an island is one "
                          "worker: with 2 islands it waits until round.deadline_s, 10m 00s. Set "
                          "round.start_workers: 2"));
  run.round.mode = RoundMode::kAsync;
  EXPECT_THAT(Plan(run, {.ranks = 8}).warnings, IsEmpty()) << "no round gathers workers";
}

TEST(PlanIslands, AnAsynchronousStepIsDividedByIslands) {
  RunOptions run = Islands();
  run.round.mode = RoundMode::kAsync;
  run.outer.optimizer = OuterOptimizerKind::kDelayedNesterov;
  run.outer.delay = 16;
  EXPECT_THAT(absl::StrJoin(Plan(run, {.ranks = 8}).warnings, "\n"),
              AllOf(HasSubstr("each contribution moves the parameters by 1 / 16 of its step (outer.delay)"),
                    HasSubstr("set outer.delay: 2, or the run learns more slowly")));
  EXPECT_THAT(ConfigAdvice(run), ElementsAre(HasSubstr("set outer.delay: 2")));
  EXPECT_THAT(absl::StrJoin(Plan(run, {.workers = 32, .ranks = 8}).warnings, "\n"),
              HasSubstr("in larger steps"));
  run.outer.delay = 2;
  EXPECT_THAT(Plan(run, {.ranks = 8}).warnings, IsEmpty());
  EXPECT_THAT(ConfigAdvice(run), IsEmpty());
}

TEST(PlanIslands, MinimumAndMergeCountIslands) {
  RunOptions run = Islands();
  run.round.minimum = 3;
  run.merge.method = MergeMethod::kMedian;
  EXPECT_THAT(
      Plan(run, {.ranks = 8}).warnings,
      ElementsAre("round.minimum is 3, but 2 islands make one contribution each: no round ever closes. "
                  "Set round.minimum: 2",
                  "merge.method protects against a wrong contribution only among 3 or more, but 2 "
                  "islands make one each: use mean or rda"));
  EXPECT_THAT(Plan(run, {.ranks = 4}).warnings, IsEmpty()) << "four islands";
}

TEST(PlanIslands, MoreRanksThanTheCoordinatorTakesByDefault) {
  EXPECT_THAT(
      absl::StrJoin(Plan(Islands(), {.ranks = 16}).warnings, "\n"),
      HasSubstr("at most 8 ranks in one worker by default: start it with atoll-coordinator --max-ranks 16"));
}

TEST(PlanIslands, MemoryIsThatOfRankZero) {
  RunOptions run = Islands();
  const RunPlan plan = Plan(run, {.ranks = 4});
  const WorkerMemory& memory = *plan.worker;
  const uint64_t own = memory.on_device() - memory.optimizer / 4 * 3;
  EXPECT_EQ(Json::parse(PlanToJson(plan))["worker_memory"]["on_each_device"], own);
  EXPECT_THAT(Text(plan),
              AllOf(HasSubstr("memory of rank 0 of 4 ranks of a worker"),
                    ContainsRegex("inner optimizer +" + HumanBytes(memory.optimizer / 4) + " +its part of " +
                                  HumanBytes(memory.optimizer)),
                    ContainsRegex("in all +" + HumanBytes(memory.total() - memory.optimizer / 4 * 3) +
                                  " +of rank 0 on a CPU"),
                    ContainsRegex("on each of 4 devices +" + HumanBytes(own) +
                                  " +a GPU of 8[.0]* GiB suffices for each rank, up to about"),
                    ContainsRegex("without the encoders +" + HumanBytes(own - memory.device_encoders)),
                    Not(HasSubstr("2 or 8 ranks")), Not(HasSubstr("of 8 ranks"))));
}

/// 12 billion parameters: one device is too small, with several ranks the largest suffices.
TEST(PlanIslands, TheAdviceIsForTheRanks) {
  RunOptions run = Islands();
  run.push_codec = CodecKind::kInt8Quantile;  // no encoders on the device
  run.model = {.layers = 60, .heads = 32, .width = 4096, .context = 1024, .vocabulary = 50257};
  run.inner.batch = 1;
  run.inner.activations = Activations::kRecomputed;
  EXPECT_THAT(Plan(run, {.workers = 2}).devices, HasSubstr("use 4 GPUs for one worker (--ranks 4: "));
  EXPECT_THAT(
      Plan(run, {.workers = 2, .ranks = 2}).devices,
      AllOf(HasSubstr("no single GPU suffices for each rank"), HasSubstr("use 4 GPUs for one worker")));
  EXPECT_THAT(Plan(run, {.workers = 2, .ranks = 4}).devices,
              HasSubstr("a GPU of 141 GiB suffices for each rank, up to about"));
  run.model = {.layers = 128, .heads = 32, .width = 4096, .context = 1024, .vocabulary = 50257};
  EXPECT_THAT(Plan(run, {.workers = 2, .ranks = 16}).devices,
              AllOf(HasSubstr("and --ranks 16, each would still need"), HasSubstr("use a smaller model")));
}

TEST(PlanIslands, EachIslandReadsATextOfItsOwn) {
  RunOptions run = Islands();
  const uint64_t total = run.total_tokens();
  PlanAssumptions islands{.ranks = 8};
  islands.texts = {{.name = "", .tokens = total}};
  EXPECT_DOUBLE_EQ(*Plan(run, islands).passes, 1);
  run.data.mode = DataMode::kLocal;
  EXPECT_DOUBLE_EQ(*Plan(run, islands).passes, 0.5) << "two islands, whatever their ranks";
}

TEST(PlanIslands, RefusesNumbersThatFitNoRun) {
  RunOptions run = Islands();
  EXPECT_THAT(Refusal(run, {.ranks = 0}), HasSubstr("at least one rank"));
  EXPECT_THAT(Refusal(run, {.ranks = 3}),
              AllOf(HasSubstr("run.workers is 16"), HasSubstr("16 is no multiple of --ranks 3"),
                    HasSubstr("give --workers with the number of islands")));
  run.model = ModelOptions(ExternalOptions{.parameters = 1000});
  EXPECT_THAT(Refusal(run, {.ranks = 2}), HasSubstr("a worker in Python counts as one"));
  run.model.external()->script = "model.pt";
  EXPECT_EQ(Plan(run, {.ranks = 2}).assumptions.workers, 8u) << "atoll-worker trains TorchScript";
}

TEST(PlanIslands, TheProgramTakesRanks) {
  const std::string config = ATOLL_SOURCE_DIR "/configs/small.yaml";
  const Outcome outcome = Atollctl().Run({"--json", "plan", config, "--workers", "3", "--ranks", "5"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["assumptions"]["workers"], 3);
  EXPECT_EQ(json["assumptions"]["ranks"], 5);
  for (const char* const wrong : {"0", "1025", "-1", "many", "99999999999999999999"}) {
    const Outcome refused = Atollctl().Run({"plan", config, "--ranks", wrong});
    EXPECT_EQ(refused.exit_code, 2) << wrong;
    EXPECT_THAT(refused.err, AllOf(HasSubstr("--ranks"), HasSubstr(wrong))) << wrong;
    EXPECT_THAT(refused.out, IsEmpty()) << wrong;
  }
}

}  // namespace
}  // namespace atl
