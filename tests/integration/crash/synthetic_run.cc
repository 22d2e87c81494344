#include "tests/integration/crash/synthetic_run.h"

#include "absl/strings/str_cat.h"
#include "common/crc32c.h"
#include "common/random.h"
#include "core/model_shape.h"
#include "protos/config/run_config.h"

namespace atl {
namespace {

constexpr char kYaml[] = R"(
run: {name: crash, workers: 3, rounds: 1000000}
model: {gpt: {layers: 1, heads: 1, width: 16, context: 8, vocabulary: 256}}
data: {tokenizer: bytes, mode: local}
inner: {steps: 4, learning_rate: 1e-3, batch: 2}
outer: {learning_rate: 0.7, momentum: 0.9}
round: {deadline_s: 60, lease_s: 60, start_workers: 3}
codec: {push: fp32, pull_delta: none}
evaluation: {every: 1000000}
checkpoint: {keep_versions: 2, shards: 2, every: 3, keep: 2, keep_every: 5}
)";

}  // namespace

WorkerName CrashWorkerName(uint32_t index) { return absl::StrCat("w", index); }

SyntheticRun SyntheticRun::Make(uint64_t random_seed) {
  SyntheticRun run;
  run.yaml = kYaml;
  run.options = ToRunOptions(ParseRunConfig(run.yaml, "crash suite").value()).value();
  run.manifest = ManifestOf(run.options.model).value();
  run.layout = PlanFragments(run.manifest, 1).value().front();
  run.seed = run.Fill(random_seed, 0.5F);
  return run;
}

std::vector<float> SyntheticRun::Fill(uint64_t random_seed, float scale) const {
  std::vector<float> values(layout.elements, 0.0F);
  SplitMixGenerator random(random_seed);
  for (const TensorSlot& slot : layout.slots) {
    for (uint64_t i = 0; i < slot.elements; ++i) {
      values[slot.offset + i] = scale * static_cast<float>(random.Uniform() - 0.5);
    }
  }
  return values;
}

std::vector<float> SyntheticRun::Contribution(const WorkerName& worker, Version base) const {
  return Fill(DeriveSeed(Crc32c(std::string_view(worker)), base.value()), 0.01F);
}

uint32_t SyntheticRun::StepsOf(const WorkerName& worker) const {
  return 1 + static_cast<uint32_t>(worker.back() - '0') % options.inner.steps;
}

uint64_t SyntheticRun::TokensOf(const WorkerName& worker) const {
  return StepsOf(worker) * options.tokens_per_step();
}

}  // namespace atl
