#include "core/llama_shape.h"

#include <charconv>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace atl {
namespace {

void AddWeight(Manifest& manifest, const std::string& name, std::vector<int64_t> shape) {
  manifest.tensors.push_back({name + ".weight", std::move(shape), false});
}

void AddProjection(Manifest& manifest, const std::string& name, int64_t outputs, int64_t inputs, bool bias) {
  AddWeight(manifest, name, {outputs, inputs});
  if (bias) manifest.tensors.push_back({name + ".bias", {outputs}, false});
}

/// Every digit: two settings with the same text have the same value.
std::string NumberText(double value) {
  char buffer[32];
  const auto result = std::to_chars(buffer, buffer + sizeof(buffer), value);
  return {buffer, result.ptr};
}

// Tensors of a block without biases of queries, keys and values and without their norms.
constexpr size_t kPlainBlock = 9;

}  // namespace

Manifest LlamaManifest(const LlamaOptions& options) {
  const int64_t width = options.width;
  const int64_t head = options.head_width();
  const int64_t queries = options.heads * head;
  const int64_t keys = options.key_value_heads() * head;
  const int64_t inner = options.intermediate;
  Manifest manifest;
  manifest.tensors.push_back({"model.embed_tokens.weight", {int64_t{options.vocabulary}, width}, true});
  for (uint32_t layer = 0; layer < options.layers; ++layer) {
    const std::string block = absl::StrCat("model.layers.", layer, ".");
    AddProjection(manifest, block + "self_attn.q_proj", queries, width, options.qkv_bias);
    AddProjection(manifest, block + "self_attn.k_proj", keys, width, options.qkv_bias);
    AddProjection(manifest, block + "self_attn.v_proj", keys, width, options.qkv_bias);
    AddWeight(manifest, block + "self_attn.o_proj", {width, queries});
    if (options.qk_norm) {
      AddWeight(manifest, block + "self_attn.q_norm", {head});
      AddWeight(manifest, block + "self_attn.k_norm", {head});
    }
    AddWeight(manifest, block + "mlp.gate_proj", {inner, width});
    AddWeight(manifest, block + "mlp.up_proj", {inner, width});
    AddWeight(manifest, block + "mlp.down_proj", {width, inner});
    AddWeight(manifest, block + "input_layernorm", {width});
    AddWeight(manifest, block + "post_attention_layernorm", {width});
  }
  AddWeight(manifest, "model.norm", {width});
  if (!options.tied_embeddings) AddWeight(manifest, "lm_head", {int64_t{options.vocabulary}, width});
  return manifest;
}

LlamaTensorIndex::LlamaTensorIndex(const LlamaOptions& options)
    : embedding(0), projection_(options.qkv_bias ? 2 : 1), norms_(options.qk_norm ? 2 : 0) {
  norm = block(options.layers).q;
  lm_head = options.tied_embeddings ? embedding : norm + 1;
}

LlamaTensorIndex::Block LlamaTensorIndex::block(size_t layer) const {
  const size_t q = 1 + layer * (kPlainBlock + 3 * (projection_ - 1) + norms_);
  const size_t k = q + projection_;
  const size_t v = k + projection_;
  const size_t o = v + projection_;
  const size_t gate = o + 1 + norms_;
  return {.q = q,
          .q_bias = q + 1,
          .k = k,
          .k_bias = k + 1,
          .v = v,
          .v_bias = v + 1,
          .o = o,
          .q_norm = o + 1,
          .k_norm = o + 2,
          .gate = gate,
          .up = gate + 1,
          .down = gate + 2,
          .input_norm = gate + 3,
          .post_attention_norm = gate + 4};
}

std::optional<ModelProblem> LlamaShape::FindProblemOfHeads() const {
  const uint32_t heads = options_.heads;
  if (heads == 0) return ModelProblem{"heads", "0 is out of range; set at least 1"};
  if (heads % options_.key_value_heads() != 0) {
    return ModelProblem{"kv_heads", absl::StrCat(options_.kv_heads, " does not divide ", section(),
                                                 ".heads, which is ", heads)};
  }
  if (options_.head_dim == 0 && options_.width % heads != 0) {
    return ModelProblem{"heads", absl::StrCat(heads, " does not divide ", section(), ".width, which is ",
                                              options_.width, "; set ", section(), ".head_dim")};
  }
  const uint32_t head = options_.head_width();
  if (head > 0 && head % 2 == 0) return std::nullopt;
  constexpr char kPairs[] = "rotary positions turn pairs of values, so it must be even and above 0";
  if (options_.head_dim > 0) return ModelProblem{"head_dim", absl::StrCat(head, " is odd: ", kPairs)};
  return ModelProblem{"heads", absl::StrCat("the width of a head is ", section(), ".width / ", heads, " = ",
                                            head, ": ", kPairs)};
}

std::optional<ModelProblem> LlamaShape::FindProblemOfScaling() const {
  const RopeScaling& scaling = options_.rope_scaling;
  if (scaling.factor == 1 || scaling.high_freq_factor > scaling.low_freq_factor) return std::nullopt;
  return ModelProblem{"rope_scaling.high_freq_factor",
                      absl::StrCat(scaling.high_freq_factor, " is not above ", section(),
                                   ".rope_scaling.low_freq_factor, which is ", scaling.low_freq_factor)};
}

std::optional<ModelProblem> LlamaShape::FindProblem() const {
  if (auto problem = FindProblemOfHeads()) return problem;
  return FindProblemOfScaling();
}

std::vector<ModelSetting> LlamaShape::FixedSettings() const {
  const auto number = [](uint32_t value) { return absl::StrCat(value); };
  const auto truth = [](bool value) { return std::string(value ? "true" : "false"); };
  const RopeScaling& scaling = options_.rope_scaling;
  return {{"layers", number(options_.layers)},
          {"heads", number(options_.heads)},
          {"kv_heads", number(options_.key_value_heads())},
          {"head_dim", number(options_.head_width())},
          {"width", number(options_.width)},
          {"intermediate", number(options_.intermediate)},
          {"context", number(options_.context)},
          {"vocabulary", number(options_.vocabulary)},
          {"rope_theta", NumberText(options_.rope_theta)},
          {"rope_scaling.factor", NumberText(scaling.factor)},
          {"rope_scaling.low_freq_factor", NumberText(scaling.low_freq_factor)},
          {"rope_scaling.high_freq_factor", NumberText(scaling.high_freq_factor)},
          {"rope_scaling.original_context", number(scaling.original_context)},
          {"rms_norm_epsilon", NumberText(options_.rms_norm_epsilon)},
          {"tied_embeddings", truth(options_.tied_embeddings)},
          {"qkv_bias", truth(options_.qkv_bias)},
          {"qk_norm", truth(options_.qk_norm)}};
}

uint64_t LlamaShape::BlockBytesPerToken(Precision precision) const {
  const uint64_t each = precision == Precision::kBf16 ? 2 : 4;
  const uint64_t width = options_.width;
  const uint64_t queries = uint64_t{options_.heads} * options_.head_width();
  const uint64_t keys = uint64_t{options_.key_value_heads()} * options_.head_width();
  const uint64_t norms = 2 * (2 * sizeof(float) + each) * width;
  const uint64_t head_norms = options_.qk_norm ? 2 * sizeof(float) * (queries + keys) : 0;
  const uint64_t attention = each * (2 * queries + 2 * keys + uint64_t{options_.heads} * options_.context);
  const uint64_t mlp = 4 * each * options_.intermediate;
  return norms + head_norms + attention + mlp;
}

double LlamaShape::TrainingFlopsPerToken() const {
  const double width = options_.width;
  const double queries = 1.0 * options_.heads * options_.head_width();
  const double keys = 1.0 * options_.key_value_heads() * options_.head_width();
  const double block = width * (2 * queries + 2 * keys + 3.0 * options_.intermediate);
  const double weights = options_.layers * block + options_.vocabulary * width;
  return 6 * weights + 12.0 * options_.layers * queries * options_.context;
}

}  // namespace atl
