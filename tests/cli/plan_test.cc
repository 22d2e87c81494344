#include "cli/plan.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/strings/str_join.h"
#include "core/codec.h"
#include "core/disk_plan.h"
#include "core/fragment_plan.h"
#include "core/gpt_shape.h"
#include "core/model_presets.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/cli/atollctl.h"
#include "tests/paths.h"

namespace atl {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;

RunOptions Gpt2Small() {
  RunOptions run;
  run.name = "gpt2";
  run.workers = 4;
  run.rounds = 100;
  run.model = {.layers = 12, .heads = 12, .width = 768, .context = 1024, .vocabulary = 50257};
  run.inner.steps = 100;
  run.inner.batch = 8;
  return run;
}

RunPlan Plan(const RunOptions& run, const PlanAssumptions& assumptions = {}) {
  const auto plan = MakePlan(run, assumptions);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.value_or(RunPlan());
}

TEST(Plan, CountsThePublishedParameterNumbers) {
  // GPT-2 as its paper's successors count it (Hugging Face's model cards): 124.4 M, 1557.6 M.
  EXPECT_EQ(Plan(Gpt2Small()).parameters, 124'439'808u);
  RunOptions xl = Gpt2Small();
  xl.model = {.layers = 48, .heads = 25, .width = 1600, .context = 1024, .vocabulary = 50257};
  EXPECT_EQ(Plan(xl).parameters, 1'557'611'200u);
}

TEST(Plan, AgreesWithTheManifestAndItsGroupsAddUp) {
  for (const bool tied : {true, false}) {
    for (const bool bias : {true, false}) {
      for (const uint32_t layers : {1, 3}) {
        RunOptions run = Gpt2Small();
        run.model = {.layers = layers, .heads = 2, .width = 96, .context = 33, .vocabulary = 257};
        run.model.gpt().tied_embeddings = tied;
        run.model.gpt().bias = bias;
        const RunPlan plan = Plan(run);
        EXPECT_EQ(plan.parameters, GptManifest(run.model.gpt()).elements());
        uint64_t sum = 0;
        for (const auto& [name, elements] : plan.groups) sum += elements;
        EXPECT_EQ(sum, plan.parameters) << "a tensor is in no group, or in two";
        EXPECT_EQ(plan.groups.size(), tied ? 5u : 6u);
      }
    }
  }
}

TEST(Plan, TheGroupsOfEveryPresetAddUp) {
  for (const ModelPreset& preset : ModelPresets()) {
    RunOptions run = Gpt2Small();
    run.model = preset.model;
    const RunPlan plan = Plan(run);
    uint64_t sum = 0;
    std::vector<std::string> names;
    for (const auto& [name, elements] : plan.groups) {
      sum += elements;
      names.push_back(name);
    }
    EXPECT_EQ(sum, plan.parameters) << preset.name;
    EXPECT_THAT(names, IsSupersetOf({"token embedding", "attention", "mlp", "normalisation"})) << preset.name;
    EXPECT_THAT(names, Not(Contains("other"))) << preset.name;
  }
}

TEST(Plan, AnExternalModelNeedsTheNumberOfItsParameters) {
  RunOptions run = Gpt2Small();
  run.model = ModelOptions(ExternalOptions());
  const absl::Status unknown = MakePlan(run, {}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(unknown));
  EXPECT_THAT(std::string(unknown.message()), AllOf(HasSubstr("give --parameters N"), HasSubstr("external")));
  run.model.external()->parameters = 1'000'000;
  const RunPlan configured = Plan(run);
  EXPECT_EQ(configured.parameters, 1'000'000u);
  EXPECT_FALSE(configured.worker.has_value()) << "they are not Atoll's";
  EXPECT_THAT(configured.groups, IsEmpty());
  EXPECT_EQ(configured.coordinator.parameters, 4 * configured.elements);
  EXPECT_NEAR(static_cast<double>(configured.elements), 1e6, 256);
  EXPECT_FALSE(nlohmann::json::parse(PlanToJson(configured)).contains("worker_memory"));
  EXPECT_THAT(absl::StrJoin(RenderPlan(configured), "\n"), Not(HasSubstr("memory of a worker")));
  EXPECT_EQ(Plan(run, {.parameters = 2'000'000}).parameters, 2'000'000u);
  EXPECT_THAT(std::string(MakePlan(Gpt2Small(), {.parameters = 5}).status().message()),
              HasSubstr("--parameters is for an external model"));
}

TEST(Plan, SaysWhichDeviceSufficesAndWhatATokenCosts) {
  RunOptions run = Gpt2Small();
  const auto text = [&] { return absl::StrJoin(RenderPlan(Plan(run)), "\n"); };
  const RunPlan plan = Plan(run);
  const WorkerMemory& memory = *plan.worker;
  const uint64_t payload = CodecFor(run.push_codec).EncodedSize(plan.elements);
  EXPECT_EQ(memory.device_encoders, 12 * plan.elements + payload + plan.elements / 4096 * 8);
  EXPECT_EQ(memory.pinned, 12 * plan.elements + payload);
  EXPECT_EQ(memory.on_device(), 16 * plan.elements + memory.activations + memory.device_encoders);
  // By hand: 6 per weight of a matrix product, and 12 * layers * width * context (core/gpt_shape.h).
  EXPECT_DOUBLE_EQ(plan.token_operations, 6.0 * 123532032 + 12.0 * 12 * 768 * 1024);
  EXPECT_THAT(text(), AllOf(HasSubstr("on the device"), HasSubstr("854MFLOP   forward and backward")));
  EXPECT_THAT(text(), ContainsRegex("a GPU of [0-9.]+ GiB suffices, up to about"));
  run.inner.batch = 100000;
  EXPECT_THAT(text(), HasSubstr("no single GPU suffices"));
  const uint64_t kept = Plan(run).worker->activations;
  run.inner.activations = Activations::kRecomputed;
  EXPECT_LT(Plan(run).worker->activations, kept / 4);
}

TEST(Plan, TwelveBytesPerParameterWithNesterovAndFloat32) {
  const RunPlan plan = Plan(Gpt2Small());
  const CoordinatorMemory& memory = plan.coordinator;
  EXPECT_EQ(memory.parameters + memory.state + memory.next, 12 * plan.elements);
  EXPECT_EQ(memory.published, 0u);
  EXPECT_LT(memory.fixed + memory.streams, uint64_t{512} << 20);
  RunOptions bf16 = Gpt2Small();
  bf16.pull_codec = CodecKind::kBf16;
  EXPECT_EQ(Plan(bf16).coordinator.published, 4 * plan.elements) << "2 bytes, twice during a merge";
  RunOptions delta = Gpt2Small();
  delta.pull_delta = CodecKind::kInt8;
  EXPECT_GT(Plan(delta).coordinator.published, 12 * plan.elements) << "values twice, and four differences";
  EXPECT_LT(Plan(delta).pull_bytes, plan.pull_bytes / 3);
  RunOptions plain = Gpt2Small();
  plain.outer.optimizer = OuterOptimizerKind::kSgd;
  EXPECT_EQ(Plan(plain).coordinator.state, 0u);
}

TEST(Plan, AnOverlappedWorkerHoldsEveryFragmentsPseudoGradient) {
  RunOptions run = Gpt2Small();
  run.push_codec = CodecKind::kE3m0;
  run.sync = {.mode = SyncMode::kBlocking, .fragments = 4, .pattern = FragmentPattern::kStrided};
  const RunPlan blocking = Plan(run);
  run.sync.mode = SyncMode::kOverlapped;
  run.sync.answer = AnswerUse::kBlend;
  const RunPlan overlapped = Plan(run);
  ASSERT_EQ(blocking.elements, overlapped.elements);
  uint64_t largest = 0;
  const auto layouts = PlanFragments(GptManifest(run.model.gpt()), 4, FragmentPattern::kStrided);
  ASSERT_TRUE(layouts.ok()) << layouts.status();
  for (const FragmentLayout& one : *layouts) {
    largest = std::max(largest, one.elements);
  }
  EXPECT_GT(largest, blocking.elements / 4) << "the embedding is in one of them";
  EXPECT_LT(largest, blocking.elements);
  const uint64_t bytes = 4 * blocking.elements;
  EXPECT_EQ(blocking.worker->exchange, 2 * bytes + 4 * largest + blocking.push_bytes + 4 * largest);
  EXPECT_EQ(overlapped.worker->exchange, 3 * bytes + 4 * largest + blocking.push_bytes + 16 * largest);
  EXPECT_EQ(blocking.worker->evaluation, 0u);
  EXPECT_EQ(overlapped.worker->evaluation, bytes);
  EXPECT_EQ(overlapped.coordinator.next, 4 * largest);
  run.sync.answer = AnswerUse::kRebase;
  EXPECT_EQ(Plan(run).worker->exchange, overlapped.worker->exchange + bytes) << "the parameters at the push";
  EXPECT_EQ(Plan(run).worker->total(), overlapped.worker->total() + bytes);
  run.sync.mode = SyncMode::kBlocking;
  EXPECT_EQ(Plan(run).worker->exchange, blocking.worker->exchange) << "where an answer is waited for";
}

TEST(Plan, DiskHoldsRetainedVersionsContributionsAndCheckpoints) {
  RunOptions run = Gpt2Small();
  run.checkpoint_every = 10;
  run.checkpoint_keep = 3;
  run.checkpoint_keep_every = 5;
  const RunPlan plan = Plan(run);
  EXPECT_EQ(plan.disk.version_bytes, 8 * plan.elements);
  EXPECT_EQ(plan.disk.versions, 3u);
  EXPECT_EQ(plan.disk.contribution_bytes, 12 * plan.push_bytes);
  EXPECT_EQ(plan.disk.checkpoints, 3u + 10 / 5);
  EXPECT_EQ(plan.disk.checkpoint_bytes, 3 * plan.disk.version_bytes + 12 * plan.push_bytes);
  EXPECT_EQ(plan.disk.directory_bytes, EmptyDirectoryBytes(run.shards));
  EXPECT_EQ(plan.disk.peak(), plan.disk.directory_bytes + kDiskReserveBytes + 7 * plan.disk.checkpoint_bytes)
      << "the run, five, and the one that is replaced";
  EXPECT_THAT(
      absl::StrJoin(RenderPlan(plan), "\n"),
      AllOf(ContainsRegex("kept free +64.0 MiB"), HasSubstr("5 at the end of the run (2 kept permanently)")));
  const auto json = nlohmann::json::parse(PlanToJson(plan))["disk"];
  EXPECT_EQ(json["reserve"], kDiskReserveBytes);
  EXPECT_EQ(json["directory"], plan.disk.directory_bytes);
  EXPECT_EQ(json["kept_checkpoints"], 2);
}

TEST(Plan, ASmallerDiskNeedsWhatFillsIt) {
  RunOptions run = Gpt2Small();
  EXPECT_EQ(Plan(run).disk.remedy(), "a larger disk, or fewer checkpoint.keep_versions");
  run.keep_versions = 1;
  EXPECT_EQ(Plan(run).disk.remedy(), "a larger disk");
  run.checkpoint_every = 10;
  EXPECT_EQ(Plan(run).disk.remedy(), "a larger disk, or fewer checkpoint.keep");
  run.checkpoint_keep = 1;
  run.checkpoint_keep_every = 2;
  EXPECT_EQ(Plan(run).disk.remedy(),
            "a larger disk, or a larger checkpoint.keep_every, which keeps 5 checkpoints permanently (0 "
            "keeps none)");
}

TEST(Plan, TimesFollowTheLinks) {
  PlanAssumptions links{
      .bandwidth_bits_per_s = 1e9, .coordinator_bandwidth_bits_per_s = 100e9, .latency_s = 0.1};
  const RunPlan own = Plan(Gpt2Small(), links);
  const double sent = 8e-9 * static_cast<double>(own.push_bytes);
  // 12.5 MB under way at full speed; from 14.5 kB there are ten doublings.
  EXPECT_NEAR(own.time.push_s, 0.1 + sent + 0.1 * (std::log2(12.5e6 / 14480) - 1), 1e-3);
  links.coordinator_bandwidth_bits_per_s = 0;
  const RunPlan shared = Plan(Gpt2Small(), links);
  EXPECT_NEAR(shared.time.push_s, own.time.push_s + 3 * sent - 0.1 * 2, 1e-3) << "four share one link";
  EXPECT_EQ(shared.time.utilisation(), 0);
  links.step_s = 0.5;
  RunOptions unwatched = Gpt2Small();
  unwatched.evaluation_every = 0;
  const RunPlan timed = Plan(unwatched, links);
  EXPECT_NEAR(timed.time.utilisation(), 50 / timed.time.round_s(), 1e-9);
  EXPECT_GT(timed.time.utilisation(), 5 * timed.data_parallel_utilisation);
  RunOptions small = Gpt2Small();
  small.push_codec = CodecKind::kInt8;
  EXPECT_LT(Plan(small, links).push_bytes, timed.push_bytes / 3.9);
  links.latency_s = 0;
  EXPECT_NEAR(Plan(Gpt2Small(), links).time.push_s, 4 * sent, 1e-6);
}

TEST(Plan, OverlappedExchangesCostNothingUntilTheyOutlastTheInnerSteps) {
  PlanAssumptions links{
      .bandwidth_bits_per_s = 1e9, .coordinator_bandwidth_bits_per_s = 0, .latency_s = 0.05, .step_s = 0.5};
  RunOptions run = Gpt2Small();
  run.evaluation_every = 0;
  run.push_codec = CodecKind::kE3m0;
  run.pull_delta = CodecKind::kE3m0;
  run.sync.fragments = 4;
  const RunPlan blocking = Plan(run, links);
  run.sync.mode = SyncMode::kOverlapped;
  const RunPlan overlapped = Plan(run, links);
  EXPECT_LT(blocking.time.utilisation(), 0.95);
  EXPECT_GT(overlapped.time.utilisation(), 0.98);
  EXPECT_FALSE(overlapped.time.starved());
  EXPECT_LT(overlapped.time.push_s, 0.5 * blocking.time.push_s) << "of one fragment";
  // At least every second push is passed over where the bytes of a round take two rounds on the link.
  links.bandwidth_bits_per_s = 4 * 8 * static_cast<double>(overlapped.push_bytes) / (2 * 50);
  const RunPlan thin = Plan(run, links);
  EXPECT_TRUE(thin.time.starved());
  EXPECT_LT(thin.time.utilisation(), 0.5);
  EXPECT_GT(thin.time.utilisation(), 0.4);
  EXPECT_THAT(absl::StrJoin(thin.warnings, "\n"), HasSubstr("pushes are skipped"));
  EXPECT_THAT(absl::StrJoin(RenderPlan(thin), "\n"), HasSubstr("during the inner steps"));
}

TEST(Plan, EvaluationIsTimeThatTheOthersWait) {
  const PlanAssumptions links{
      .bandwidth_bits_per_s = 100e9, .coordinator_bandwidth_bits_per_s = 0, .latency_s = 0, .step_s = 0.3};
  RunOptions run = Gpt2Small();
  run.inner.accumulation = 2;
  run.evaluation_every = 4;
  run.evaluation_batches = 40;
  // Forward only, of half a step's samples: 40 * 0.05 s, every fourth round.
  EXPECT_NEAR(Plan(run, links).time.evaluate_s, 0.5, 1e-9);
  PlanAssumptions measured = links;
  measured.evaluation_batch_s = 0.1;
  EXPECT_NEAR(Plan(run, measured).time.evaluate_s, 1, 1e-9);
  for (const SyncMode mode : {SyncMode::kBlocking, SyncMode::kOverlapped}) {
    run.sync.mode = mode;
    run.evaluation_every = 4;
    const double with = Plan(run, links).time.round_s();
    run.evaluation_every = 0;
    // Overlapped, whole steps are simulated.
    EXPECT_NEAR(with - Plan(run, links).time.round_s(), 0.5, mode == SyncMode::kBlocking ? 1e-9 : 0.01);
  }
  run.evaluation_every = 4;
  run.evaluated_by = EvaluatedBy::kEvaluator;
  EXPECT_EQ(Plan(run, links).time.evaluate_s, 0);
}

TEST(Plan, NamesTheLargestCauseOfLostTime) {
  PlanAssumptions links{.bandwidth_bits_per_s = 100e9,
                        .coordinator_bandwidth_bits_per_s = 100e9,
                        .latency_s = 0,
                        .step_s = 0.1};
  RunOptions run = Gpt2Small();
  run.inner.steps = 20;
  run.evaluation_every = 1;
  run.evaluation_batches = 1000;  // 33 s a round beside 2 s of inner steps
  for (const SyncMode mode : {SyncMode::kBlocking, SyncMode::kOverlapped}) {
    run.sync.mode = mode;
    const std::string warned = absl::StrJoin(Plan(run, links).warnings, "\n");
    EXPECT_THAT(warned, AllOf(HasSubstr("is evaluation"), HasSubstr("evaluation.every")));
    EXPECT_THAT(warned, Not(HasSubstr("codec.push")));
  }
  run.sync.mode = SyncMode::kBlocking;
  run.evaluation_every = 0;
  links.bandwidth_bits_per_s = 1e8;
  run.push_codec = CodecKind::kFp32;
  run.pull_delta = CodecKind::kE3m0;
  EXPECT_THAT(absl::StrJoin(Plan(run, links).warnings, "\n"),
              AllOf(HasSubstr("upload of contributions"),
                    HasSubstr("more inner.steps, or codec.push: e3m0, or sync.mode: overlapped help")));
  run.push_codec = CodecKind::kE3m0;
  run.pull_delta = std::nullopt;
  EXPECT_THAT(absl::StrJoin(Plan(run, links).warnings, "\n"),
              AllOf(HasSubstr("download of versions"),
                    HasSubstr("more inner.steps, or codec.pull_delta: e3m0, or sync.mode: overlapped help")));
  run.pull_delta = CodecKind::kE3m0;
  links.bandwidth_bits_per_s = 1e7;
  EXPECT_THAT(absl::StrJoin(Plan(run, links).warnings, "\n"),
              AllOf(HasSubstr("more inner.steps, or sync.mode: overlapped help"), Not(HasSubstr("codec."))));
}

TEST(Plan, WarnsOfARunThatCompressesOneDirectionOnly) {
  const auto warnings = [](CodecKind push, CodecKind pull, std::optional<CodecKind> delta) {
    RunOptions run = Gpt2Small();
    run.push_codec = push;
    run.pull_codec = pull;
    run.pull_delta = delta;
    return absl::StrJoin(Plan(run).warnings, "\n");
  };
  EXPECT_THAT(warnings(CodecKind::kE3m0, CodecKind::kFp32, std::nullopt),
              AllOf(HasSubstr("only pushes are compressed: 4.12 bits a value up, 32 down, which is 89 %"),
                    HasSubstr("codec.pull_delta: e3m0")));
  EXPECT_THAT(warnings(CodecKind::kFp32, CodecKind::kFp32, CodecKind::kInt8),
              AllOf(HasSubstr("only pulls are compressed"), HasSubstr("codec.push: e3m0")));
  EXPECT_THAT(warnings(CodecKind::kFp32, CodecKind::kBf16, std::nullopt), HasSubstr("only pulls"));
  EXPECT_EQ(warnings(CodecKind::kE3m0, CodecKind::kFp32, CodecKind::kE3m0), "");
  EXPECT_EQ(warnings(CodecKind::kInt8, CodecKind::kBf16, std::nullopt), "");
  EXPECT_EQ(warnings(CodecKind::kFp32, CodecKind::kFp32, std::nullopt), "");
}

TEST(Plan, KnowsThatNoSparseCodecShrinksDownloads) {
  const PlanAssumptions links{
      .bandwidth_bits_per_s = 1e7, .coordinator_bandwidth_bits_per_s = 1e9, .latency_s = 0, .step_s = 0.1};
  RunOptions run = Gpt2Small();
  run.push_codec = CodecKind::kTopK64;
  run.pull_delta = CodecKind::kE3m0;
  EXPECT_THAT(
      Plan(run, links).warnings,
      ElementsAre(AllOf(HasSubstr("codec.push: topk64 shrinks only uploads: 0.1"),
                        HasSubstr("4.12 down, which is 96 % of all bytes. It has no form for downloads; "
                                  "their smallest is codec.pull_delta: e3m0")),
                  AllOf(HasSubstr("is the download of versions: more inner.steps, or sync.mode: "
                                  "overlapped help"),
                        Not(HasSubstr("codec")))));
  run.sync.mode = SyncMode::kOverlapped;
  run.sync.fragments = 4;
  PlanAssumptions thin = links;
  thin.bandwidth_bits_per_s = 2e6;
  EXPECT_THAT(
      Plan(run, thin).warnings.back(),
      AllOf(HasSubstr("so that pushes are skipped: more inner.steps helps"), Not(HasSubstr("codec"))));
}

TEST(Plan, OfAMixtureTheTextThatIsReadMostCounts) {
  const TestDir dir;
  const auto write = [&](const std::string& name, const std::string& text) {
    ASSERT_TRUE(WriteFileAtomically(dir.File(name), text).ok());
  };
  for (const char* const folder : {"web", "code", "mix"}) ASSERT_TRUE(CreateDirs(dir.File(folder)).ok());
  write("web/meta.json", R"({"tokenizer": "bytes", "vocabulary": 256, "fingerprint": "w"})");
  write("code/meta.json", R"({"tokenizer": "bytes", "vocabulary": 256, "fingerprint": "c"})");
  write("mix/meta.json", R"({"tokenizer": "bytes", "vocabulary": 256, "fingerprint": "m", "mixture": [
    {"folder": "../web", "weight": 3, "train_tokens": 300000, "held_out_tokens": 9, "fingerprint": "w"},
    {"folder": "../code", "weight": 1, "train_tokens": 10000, "held_out_tokens": 9, "fingerprint": "c"}]})");
  write("run.yaml",
        "run: {name: tiny, workers: 2, rounds: 50}\n"
        "model: {gpt: {layers: 1, heads: 1, width: 32, context: 16, vocabulary: 256}}\n"
        "data: {tokenizer: bytes}\ninner: {steps: 125, learning_rate: 1e-3, batch: 2}\n");  // 400,000 tokens
  const auto plan = [&] { return Atollctl().Run({"plan", dir.File("run.yaml"), "--data", dir.File("mix")}); };
  const Outcome planned = plan();
  EXPECT_EQ(planned.exit_code, 0) << planned.err;
  EXPECT_THAT(planned.out,
              AllOf(HasSubstr("310k training tokens in a mixture of 2 datasets; of the one read most"),
                    HasSubstr("warning: the run reads ../code of its mixture 10 times (100k tokens planned, "
                              "10.0k in the text)"),
                    HasSubstr("use more text, a lower weight or fewer run.rounds")));
  write("code/meta.json", R"({"tokenizer": "bytes", "vocabulary": 256, "fingerprint": "other"})");
  const Outcome changed = plan();
  EXPECT_EQ(changed.exit_code, 6) << changed.err;
  EXPECT_THAT(changed.err, HasSubstr("was made of the dataset ../code, and at"));
}

TEST(Plan, CountsThePassesOverTheText) {
  const TestDir dir;
  ASSERT_TRUE(CreateDirs(dir.File("tokens")).ok());
  constexpr uint64_t kHeader = 1024, kTokens = 40'000;
  ASSERT_TRUE(
      WriteFileAtomically(dir.File("tokens/train_000.bin"), std::string(kHeader + 2 * kTokens, '\0')).ok());
  const std::string yaml =
      "run: {name: tiny, workers: 2, rounds: 50}\n"
      "model: {gpt: {layers: 1, heads: 1, width: 32, context: 16, vocabulary: 256}}\n"
      "data: {tokenizer: bytes}\ninner: {steps: 125, learning_rate: 1e-3, batch: 2}\n";  // 400,000 tokens
  const auto plan = [&](const std::string& text) {
    EXPECT_TRUE(WriteFileAtomically(dir.File("run.yaml"), text).ok());
    const Outcome outcome = Atollctl().Run({"plan", dir.File("run.yaml"), "--data", dir.File("tokens")});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return outcome.out;
  };
  constexpr char kWarning[] =
      "warning: the run reads its training text 10 times (400k tokens planned, 40.0k in the text)";
  EXPECT_THAT(plan(yaml), AllOf(HasSubstr("passes over the text"), HasSubstr("40.0k training tokens"),
                                HasSubstr(kWarning), HasSubstr("use more text or fewer run.rounds")));
  EXPECT_THAT(plan(absl::StrReplaceAll(yaml, {{"rounds: 50", "rounds: 20"}})),
              AllOf(HasSubstr("passes over the text"), Not(HasSubstr("reads its training text"))));
  // Each of the two workers has such a text of its own.
  EXPECT_THAT(plan(absl::StrReplaceAll(yaml, {{"tokenizer: bytes", "tokenizer: bytes, mode: local"}})),
              HasSubstr("reads its training text 5 times"));
  const Outcome absent = Atollctl().Run({"plan", dir.File("run.yaml"), "--data", dir.File("absent")});
  EXPECT_EQ(absent.exit_code, 6) << absent.err;
}

TEST(Plan, ValidateWarnsToo) {
  const TestDir dir;
  std::string yaml = ReadFile(ATOLL_SOURCE_DIR "/configs/small.yaml").value();
  const auto warned = [&](const std::string& text) {
    EXPECT_TRUE(WriteFileAtomically(dir.File("run.yaml"), text).ok());
    const Outcome outcome = Atollctl().Run({"config", "validate", dir.File("run.yaml")});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.out;
    return outcome.out;
  };
  EXPECT_THAT(warned(yaml), Not(HasSubstr("warning")));
  EXPECT_THAT(warned(absl::StrReplaceAll(yaml, {{"pull_delta: e3m0", "pull_delta: none"}})),
              HasSubstr("warning: only pushes are compressed"));
  EXPECT_THAT(warned(absl::StrReplaceAll(yaml, {{"vocabulary: 256", "vocabulary: 100"}})),
              HasSubstr("warning: data.tokenizer 'bytes' has 256 tokens, and model.gpt.vocabulary is 100"));
  EXPECT_THAT(warned(absl::StrReplaceAll(yaml, {{"tokenizer: bytes", "tokenizer: byte"}})),
              HasSubstr("warning: data.tokenizer 'byte': did you mean 'bytes'?"));
  // A published one, and a vocabulary of one's own.
  for (const char* const name : {"gpt2", "qwen2.5", "gpt2-1f0c77a2"}) {
    const std::string named = absl::StrCat("tokenizer: ", name);
    EXPECT_THAT(warned(absl::StrReplaceAll(yaml, {{"tokenizer: bytes", named}})), Not(HasSubstr("warning")));
  }
}

TEST(Plan, ValidateSaysWhereTheModelComesFrom) {
  const TestDir dir;
  const auto told = [&](const std::string& model) {
    const std::string yaml = absl::StrCat("run: {name: r, workers: 2, rounds: 6}\nmodel: {", model,
                                          "}\ndata: {tokenizer: bytes}\n"
                                          "inner: {steps: 20, batch: 8, learning_rate: 3e-3}\n");
    EXPECT_TRUE(WriteFileAtomically(dir.File("run.yaml"), yaml).ok());
    const Outcome outcome = Atollctl().Run({"config", "validate", dir.File("run.yaml")});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return outcome.out;
  };
  EXPECT_THAT(told("torchscript: {file: model.pt, context: 64, vocabulary: 256}"),
              AllOf(HasSubstr("the model is the TorchScript file model.pt"), Not(HasSubstr("external"))));
  EXPECT_THAT(told("external: {}"), HasSubstr("the model is external"));
}

TEST(Plan, ValidateTellsEverythingAtOnce) {
  const TestDir dir;
  const std::string yaml = absl::StrReplaceAll(ReadFile(ATOLL_SOURCE_DIR "/configs/small.yaml").value(),
                                               {{"tokenizer: bytes", "tokenizer: byte"}});
  const auto told = [&](const std::string& from, const std::string& to) {
    const std::string text = absl::StrReplaceAll(yaml, {{from, to}});
    EXPECT_NE(text, yaml);
    EXPECT_TRUE(WriteFileAtomically(dir.File("run.yaml"), text).ok());
    const Outcome outcome = Atollctl().Run({"config", "validate", dir.File("run.yaml")});
    EXPECT_EQ(outcome.exit_code, 2) << outcome.out;
    EXPECT_THAT(outcome.err, HasSubstr("warning: data.tokenizer 'byte': did you mean 'bytes'?"));
    return outcome.err;
  };
  EXPECT_THAT(told("pull_delta: e3m0", "pull_delta: e3"), HasSubstr("codec.pull_delta: 'e3' is not known"));
  EXPECT_THAT(told("heads: 4", "heads: 3"), HasSubstr("model.gpt.heads: 3 does not divide"));
  EXPECT_THAT(told("codec:", "limits: {contribution_budget_mib: 1}\nround: {mode: free}\ncodec:"),
              HasSubstr("round.mode: 'free' is now called 'async'"));
}

TEST(Plan, TheShippedConfigurationsPromiseWhatItSays) {
  for (const std::string name : {"small.yaml", "quickstart.yaml"}) {
    const std::string file = ATOLL_SOURCE_DIR "/configs/" + name;
    const std::string yaml = ReadFile(file).value();
    const size_t end = yaml.find(" times fewer bytes than data-parallel");
    ASSERT_NE(end, std::string::npos) << name;
    const size_t begin = yaml.rfind(' ', end - 1) + 1;
    EXPECT_THAT(Atollctl().Run({"plan", file}).out,
                HasSubstr(yaml.substr(begin, end - begin) + " times as much"))
        << name;
  }
}

TEST(Plan, WarnsOfWhatWillNotWork) {
  EXPECT_THAT(Plan(Gpt2Small()).warnings, IsEmpty());
  RunOptions tight = Gpt2Small();
  tight.contribution_budget_bytes = 1 << 20;
  tight.round.deadline = Seconds(1);
  EXPECT_THAT(absl::StrJoin(Plan(tight).warnings, "\n"),
              AllOf(HasSubstr("some pushes must wait"), HasSubstr("round.deadline_s is 1.0 s")));
}

TEST(ParseBandwidth, UnitsAndRejections) {
  EXPECT_EQ(ParseBandwidth("100Mbit/s").value(), 100e6);
  EXPECT_EQ(ParseBandwidth("1.5 Gbit/s").value(), 1.5e9);
  EXPECT_EQ(ParseBandwidth("50 MB/s").value(), 400e6);
  for (const char* wrong : {"", "fast", "100", "-1Mbit/s", "0Mbit/s", "1 Mbit", "nanMbit/s", "1e-300bit/s",
                            "999bit/s", "1e17kbit/s"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseBandwidth(wrong).status())) << wrong;
  }
  EXPECT_DOUBLE_EQ(ParseSpan("50ms").value(), 0.05);
  EXPECT_DOUBLE_EQ(ParseSpan("0.2 s").value(), 0.2);
  EXPECT_EQ(ParseSpan("1e10d").status().message(), "'1e10d' is not between 1 ns and 36500 days");
}

TEST(PlanCommand, RejectsStepsThatNoClockCanMeasure) {
  const std::string config = ATOLL_SOURCE_DIR "/configs/small.yaml";
  for (const char* wrong : {"nan", "1e20", "-5", "0"}) {
    const Outcome outcome = Atollctl().Run({"plan", config, "--step-ms", wrong});
    EXPECT_EQ(outcome.exit_code, 2) << wrong;
    EXPECT_LT(outcome.err.size(), 400U) << wrong;
  }
  EXPECT_EQ(Atollctl().Run({"plan", config, "--step-ms", "86400000", "--bandwidth", "1kbit/s"}).exit_code, 0);
}

TEST(PlanCommand, PrintsForPeopleAndPrograms) {
  const std::string config = ATOLL_SOURCE_DIR "/configs/small.yaml";
  const Outcome people = Atollctl().Run({"plan", config, "--bandwidth", "100Mbit/s", "--step-ms", "40"});
  EXPECT_EQ(people.exit_code, 0) << people.err;
  EXPECT_THAT(people.out, AllOf(HasSubstr("memory of the coordinator"), HasSubstr("compute utilisation"),
                                Not(HasSubstr("nan"))));
  const Outcome programs = Atollctl().Run({"--json", "plan", config, "--workers", "7"});
  const auto json = nlohmann::json::parse(programs.out);
  EXPECT_EQ(json["assumptions"]["workers"], 7);
  EXPECT_EQ(json["coordinator_memory"]["parameters"], 4 * json["elements"].get<uint64_t>());
  EXPECT_EQ(Atollctl().Run({"plan", config, "--bandwidth", "fast"}).exit_code, 2);
  EXPECT_EQ(Atollctl().Run({"plan", "/nowhere.yaml"}).exit_code, 6);
}

TEST(ConfigExplain, MarkdownIsTheEndOfTheDocument) {
  const Outcome outcome = Atollctl().Run({"config", "explain", "--markdown"});
  EXPECT_EQ(outcome.exit_code, 0);
  const std::string document = ReadFile(ATOLL_SOURCE_DIR "/docs/reference/configuration.md").value();
  EXPECT_GT(outcome.out.size(), 4000u);
  EXPECT_TRUE(document.ends_with(outcome.out))
      << "docs/reference/configuration.md must end with the output of "
         "atollctl config explain --markdown";
}

TEST(Plan, SaysWhatPrivacyTheRunWillHaveSpent) {
  RunOptions run = Gpt2Small();
  EXPECT_FALSE(Plan(run).privacy.has_value());
  run.workers = 8;
  run.privacy = {.clip_norm = 1, .noise_multiplier = 20, .delta = 1e-5};
  const RunPlan plan = Plan(run);
  ASSERT_TRUE(plan.privacy.has_value());
  // docs/reference/privacy.md; tests/core/privacy_test.cc has the mathematics.
  EXPECT_NEAR(plan.privacy->epsilon, 2.166, 5e-4);
  EXPECT_NEAR(*plan.privacy->published_epsilon, 0.6948, 5e-5);
  EXPECT_THAT(absl::StrJoin(RenderPlan(plan), "\n"),
              AllOf(HasSubstr("privacy after 100 rounds: clip norm 1, noise multiplier 20"),
                    HasSubstr("2.166"), HasSubstr("for readers of versions only, with 8 equal workers")));
  EXPECT_NEAR(nlohmann::json::parse(PlanToJson(plan))["privacy"]["epsilon"].get<double>(), 2.166, 5e-4);
  run.merge.method = MergeMethod::kMedian;
  EXPECT_FALSE(Plan(run).privacy->published_epsilon.has_value()) << "of a median no such bound is known";
  run.privacy.noise_multiplier = 1;
  EXPECT_THAT(absl::StrJoin(Plan(run).warnings, "\n"), HasSubstr("gives almost no privacy"));
}

}  // namespace
}  // namespace atl
