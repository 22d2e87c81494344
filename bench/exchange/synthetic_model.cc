#include "bench/exchange/synthetic_model.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "absl/strings/str_format.h"
#include "common/random.h"
#include "common/status.h"
#include "core/codec.h"
#include "core/fragment_plan.h"
#include "core/model_shape.h"
#include "protos/config/run_config.h"

namespace atl {
namespace {

// Nothing waits for anybody but the workers that are there: a round closes when all have pushed. Nobody
// trains, so that the recipe may be any: every codec meets the same outer step.
constexpr char kYaml[] =
    "run: {name: exchange, workers: %d, rounds: 100000000}\n"
    "model: {gpt: {layers: %d, heads: 8, width: %d, context: %d, vocabulary: 256}}\n"
    "data: {tokenizer: bytes, mode: local}\n"
    "inner: {steps: 1, learning_rate: 1e-3, batch: 1}\n"
    "codec: {push: %s, pull: %s, pull_delta: %s, allow_momentum_with_topk: true}\n"
    "round: {deadline_s: 3600, lease_s: 3600, start_workers: %d}\n"
    "evaluation: {every: 1000000}\n"
    "limits: {contribution_budget_mib: 65536, joins_per_s: 100000}\n"
    "checkpoint: {keep_versions: 1, shards: 4}\n";

constexpr uint64_t kRow = 1024;
// Values that are drawn; after them the same ones again, further apart than any codec or compressor looks.
constexpr uint64_t kDrawn = uint64_t{1} << 22;

}  // namespace

absl::StatusOr<SyntheticModel> MakeSyntheticModel(uint64_t mib, uint32_t workers, const Recipe& recipe) {
  const uint64_t elements = (mib << 20) / sizeof(float);
  const uint64_t width = mib >= 64 ? 1024 : 256;
  const uint64_t layer = 12 * width * width + 13 * width;
  const uint64_t layers = std::max<uint64_t>(1, elements / layer);
  // Positions fill up what layers leave.
  const uint64_t rest = elements > layers * layer ? elements - layers * layer : 0;
  const uint64_t context = std::max<uint64_t>(16, rest / width > 258 ? rest / width - 258 : 0);
  SyntheticModel model;
  model.yaml = absl::StrFormat(kYaml, workers, layers, width, context, std::string(CodecName(recipe.push)),
                               std::string(CodecName(recipe.pull)),
                               recipe.delta ? std::string(CodecName(*recipe.delta)) : "none", workers);
  ATOLL_ASSIGN_OR_RETURN(const v1::RunConfig config, ParseRunConfig(model.yaml, "bench"));
  ATOLL_ASSIGN_OR_RETURN(const RunOptions options, ToRunOptions(config));
  model.manifest = ManifestOf(options.model).value();
  ATOLL_ASSIGN_OR_RETURN(const auto layouts, PlanFragments(model.manifest, 1));
  model.elements = layouts.front().elements;
  return model;
}

std::vector<float> PseudoGradient(uint64_t elements, uint64_t seed) {
  std::vector<float> values(elements);
  SplitMixGenerator random(seed);
  double scale = 0;
  for (uint64_t i = 0; i < std::min(elements, kDrawn); ++i) {
    if (i % kRow == 0) scale = 1e-3 * std::exp(random.Uniform() * 2 - 1);
    // Box and Muller (1958).
    const double radius = std::sqrt(-2 * std::log(1 - random.Uniform()));
    values[i] = static_cast<float>(scale * radius * std::cos(2 * std::numbers::pi * random.Uniform()));
  }
  for (uint64_t i = kDrawn; i < elements; ++i) values[i] = values[i - kDrawn];
  return values;
}

std::vector<std::byte> EncodedAs(CodecKind codec, const std::vector<float>& values) {
  std::vector<std::byte> payload(CodecFor(codec).EncodedSize(values.size()));
  CodecFor(codec).Encode(values, payload);
  return payload;
}

}  // namespace atl
