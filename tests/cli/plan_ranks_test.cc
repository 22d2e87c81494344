// `plan`'s memory of the ranks of a worker, compared with the tables of the documentation.
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
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
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

/// A codec without kernels for GPUs: nothing is on the device but what trains.
constexpr CodecKind kEncodedOnTheHost = CodecKind::kInt8Quantile;

RunOptions Gpt(CodecKind push = kEncodedOnTheHost) {
  RunOptions run;
  run.name = "ranks";
  run.workers = 2;
  run.rounds = 10;
  run.model = {.layers = 4, .heads = 4, .width = 256, .context = 128, .vocabulary = 5000};
  run.inner.steps = 10;
  run.inner.batch = 4;
  run.push_codec = push;
  return run;
}

RunPlan Plan(const RunOptions& run) {
  const auto plan = MakePlan(run, {});
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.value_or(RunPlan());
}

Json WorkerJson(const RunPlan& plan) { return Json::parse(PlanToJson(plan))["worker_memory"]; }

std::string Text(const RunPlan& plan) { return absl::StrJoin(RenderPlan(plan), "\n"); }

uint64_t OnDevice(const Json& worker, uint64_t ranks) {
  return worker.at(ranks == 1 ? "on_device" : "on_device_of_" + std::to_string(ranks) + "_ranks")
      .get<uint64_t>();
}

/// Of the guide's section "Memory": bytes per parameter and device by the number of ranks.
std::map<uint64_t, uint64_t> GuideTable() {
  const std::string guide = ReadFile(ATOLL_SOURCE_DIR "/docs/guides/gpus-and-islands.md").value();
  const size_t begin = guide.find("| N | bytes per parameter and device, without activations |");
  EXPECT_NE(begin, std::string::npos) << "the guide's table has moved";
  std::map<uint64_t, uint64_t> table;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(guide.substr(begin), '\n'))) {
    if (!line.starts_with("|")) break;
    const std::vector<std::string> cells = absl::StrSplit(line, '|');
    uint64_t ranks = 0;
    uint64_t bytes = 0;
    if (absl::SimpleAtoi(cells.at(1), &ranks) && absl::SimpleAtoi(cells.at(2), &bytes)) table[ranks] = bytes;
  }
  return table;
}

TEST(PlanRanks, TheBytesPerParameterAreThoseOfTheGuide) {
  const std::map<uint64_t, uint64_t> table = GuideTable();
  ASSERT_EQ(table.size(), 3u);
  const RunPlan plan = Plan(Gpt());
  const Json worker = WorkerJson(plan);
  ASSERT_EQ(plan.worker->device_encoders, 0u);
  ASSERT_GT(plan.worker->activations, 0u);
  for (const auto& [ranks, bytes] : table) {
    EXPECT_EQ(bytes, 8 + 8 / ranks) << "docs/reference/islands.md, Memory";
    EXPECT_EQ(OnDevice(worker, ranks), bytes * plan.elements + plan.worker->activations) << ranks << " ranks";
  }
}

TEST(PlanRanks, OnlyTheMomentsAreShared) {
  RunOptions run = Gpt(CodecKind::kE3m0);
  const RunPlan whole = Plan(run);
  EXPECT_GE(whole.worker->device_encoders, 12 * whole.elements)
      << "the guide: 12 bytes or more per parameter";
  for (const uint64_t ranks : {2, 8}) {
    EXPECT_EQ(OnDevice(WorkerJson(whole), ranks),
              (8 + 8 / ranks) * whole.elements + whole.worker->activations + whole.worker->device_encoders)
        << "the device of rank 0 decides whether the model fits";
  }
  run.sync.fragments = 4;
  const RunPlan fragments = Plan(run);
  EXPECT_GE(fragments.worker->device_encoders, 16 * fragments.elements) << "4 bytes more with several";
  EXPECT_EQ(OnDevice(WorkerJson(fragments), 8),
            9 * fragments.elements + fragments.worker->activations + fragments.worker->device_encoders);

  run = Gpt();
  run.inner.precision = Precision::kBf16;
  const RunPlan half = Plan(run);
  EXPECT_EQ(OnDevice(WorkerJson(half), 2), (12 + 2) * half.elements + half.worker->activations)
      << "each rank has the bf16 weights";
}

TEST(PlanRanks, AnotherOptimizerSharesWhatItHas) {
  RunOptions run = Gpt();
  run.inner.optimizer = InnerOptimizerKind::kSgd;
  run.inner.momentum = 0.9;
  const RunPlan momentum = Plan(run);
  for (const uint64_t ranks : {2, 8}) {
    EXPECT_EQ(OnDevice(WorkerJson(momentum), ranks),
              8 * momentum.elements + 4 * momentum.elements / ranks + momentum.worker->activations);
  }
  run.inner.momentum = 0;
  const RunPlan plain = Plan(run);
  EXPECT_EQ(OnDevice(WorkerJson(plain), 8), OnDevice(WorkerJson(plain), 1));
  EXPECT_THAT(Text(plain), Not(HasSubstr("ranks of a worker"))) << "ranks would save nothing";
}

TEST(PlanRanks, TheProgramPrintsTheRow) {
  const std::string config = ATOLL_SOURCE_DIR "/configs/small.yaml";
  const Outcome programs = Atollctl().Run({"--json", "plan", config});
  ASSERT_EQ(programs.exit_code, 0) << programs.err;
  const Json worker = Json::parse(programs.out)["worker_memory"];
  EXPECT_EQ(OnDevice(worker, 1) - OnDevice(worker, 2), worker["optimizer"].get<uint64_t>() / 2);
  const Outcome people = Atollctl().Run({"plan", config});
  ASSERT_EQ(people.exit_code, 0) << people.err;
  EXPECT_THAT(people.out, ContainsRegex("device of 2 or 8 ranks +" + HumanBytes(OnDevice(worker, 2)) + ", " +
                                        HumanBytes(OnDevice(worker, 8)) + " +on each device"));
}

/// About layers * 0.2 + 0.2 billion parameters, with the least activations.
RunOptions Large(uint32_t layers, CodecKind push = kEncodedOnTheHost) {
  RunOptions run = Gpt(push);
  run.model = {.layers = layers, .heads = 32, .width = 4096, .context = 1024, .vocabulary = 50257};
  run.inner.batch = 1;
  run.inner.activations = Activations::kRecomputed;
  return run;
}

TEST(PlanAdvice, NamesTheFewestRanksThatFit) {
  const RunPlan plan = Plan(Large(60));
  const uint64_t of_four = 10 * plan.elements + plan.worker->activations;
  EXPECT_THAT(plan.devices,
              AllOf(HasSubstr("no single GPU suffices"),
                    HasSubstr("use 4 GPUs for one worker (--ranks 4: " + HumanBytes(of_four) + " on each)")));
  EXPECT_THAT(plan.devices, Not(HasSubstr("inner."))) << "both are set already";
  EXPECT_THAT(plan.devices, Not(HasSubstr("--encode-on-cpu"))) << "this codec has no encoders there";
  EXPECT_THAT(Plan(Large(60, CodecKind::kE3m0)).devices,
              HasSubstr(HumanBytes(of_four) + " on each), and atoll-worker --encode-on-cpu"));
}

TEST(PlanAdvice, SaysThatNoSettingHelps) {
  const RunPlan plan = Plan(Large(128));
  const uint64_t of_eight = 9 * plan.elements + plan.worker->activations;
  EXPECT_THAT(plan.devices, HasSubstr("would still need " + HumanBytes(of_eight) + ": use a smaller model"));
  EXPECT_THAT(plan.devices, Not(HasSubstr("inner.")));
}

/// Of "up to about 12.3G parameters".
double MostParameters(const std::string& advice) {
  const size_t at = advice.find("up to about ");
  EXPECT_NE(at, std::string::npos) << advice;
  return std::strtod(advice.c_str() + at + std::strlen("up to about "), nullptr) * 1e9;
}

TEST(PlanAdvice, ADeeperModelOfThatSizeStillFits) {
  const auto deep = [](uint32_t layers) {
    RunOptions run = Large(layers, CodecKind::kE3m0);
    run.inner.activations = Activations::kKept;
    run.inner.batch = 4;
    return Plan(run);
  };
  uint32_t layers = 6;
  const std::string advice = deep(layers).devices;
  const std::string fits = advice.substr(0, advice.find(", up to"));
  for (; static_cast<double>(deep(layers + 1).parameters) <= MostParameters(advice); ++layers) {
    EXPECT_THAT(deep(layers + 1).devices, HasSubstr(fits + ",")) << layers + 1 << " layers; " << advice;
  }
  EXPECT_GT(layers, 6u) << "this test has looked at no deeper model: " << advice;
}

TEST(PlanAdvice, EncodersAreNotNeeded) {
  const std::string only_without = Plan(Large(34, CodecKind::kE3m0)).devices;
  EXPECT_THAT(only_without, HasSubstr("a GPU of 141 GiB suffices with atoll-worker --encode-on-cpu, up to"));
  EXPECT_EQ(Plan(Large(34)).devices.find("--encode-on-cpu"), std::string::npos);
  const RunPlan both = Plan(Large(10, CodecKind::kE3m0));
  EXPECT_THAT(both.devices,
              ContainsRegex("a GPU of 80.* suffices.*; one of 48.* with atoll-worker --encode"));
  EXPECT_THAT(Text(both), ContainsRegex("without the encoders .*with --encode-on-cpu; of 8 ranks: "));
}

TEST(PlanAdvice, FewerActivationsOnlyWhereTheyHelp) {
  RunOptions run = Gpt();
  run.inner.batch = 1000000;
  EXPECT_THAT(Plan(run).devices, HasSubstr("use a smaller inner.batch"));
  run.inner.activations = Activations::kRecomputed;
  EXPECT_THAT(Plan(run).devices, AllOf(HasSubstr("use a smaller inner.batch"), Not(HasSubstr("recompute"))));
  RunOptions both = Large(34);
  both.inner.batch = 16;
  both.inner.precision = Precision::kBf16;
  both.inner.activations = Activations::kKept;
  EXPECT_THAT(Plan(both).devices,
              HasSubstr("use inner.recompute_activations: true, and a smaller inner.batch"));
}

/// Of docs/reference/islands.md: billions of parameters by column, with 8 ranks.
TEST(PlanAdvice, TheLimitsOfTheDocumentationAreThoseOfThePlan) {
  const std::string page = ReadFile(ATOLL_SOURCE_DIR "/docs/reference/islands.md").value();
  RunOptions half = Gpt(CodecKind::kE3m0);
  half.inner.precision = Precision::kBf16;
  const auto per_parameter = [](const RunPlan& plan, bool encoders) {
    const WorkerMemory& memory = *plan.worker;
    const uint64_t bytes = OnDevice(WorkerJson(plan), 8) - memory.activations;
    return static_cast<double>(bytes - (encoders ? 0 : memory.device_encoders)) /
           static_cast<double>(plan.elements);
  };
  const double columns[] = {per_parameter(Plan(Gpt()), true), per_parameter(Plan(half), false),
                            per_parameter(Plan(half), true)};
  for (const int gib : {80, 24}) {
    const std::string row = "\n| " + std::to_string(gib) + " GiB |";
    const size_t begin = page.find(row);
    ASSERT_NE(begin, std::string::npos) << "the table has moved";
    const std::vector<std::string> cells =
        absl::StrSplit(page.substr(begin + row.size(), page.find('\n', begin + 1) - begin - row.size()), '|');
    for (size_t i = 0; i < 3; ++i) {
      double billions = 0;
      ASSERT_TRUE(absl::SimpleAtod(cells.at(i), &billions)) << row << cells.at(i);
      // A tenth stays free, and 1 GB is for activations.
      const double fits = (0.9 * gib * double{1 << 30} - 1e9) / columns[i] / 1e9;
      EXPECT_NEAR(billions, fits, 0.06) << gib << " GiB, column " << i;
    }
  }
}

}  // namespace
}  // namespace atl
