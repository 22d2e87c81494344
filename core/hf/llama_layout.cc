#include "core/hf/llama_layout.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/llama_shape.h"

namespace atl {
namespace {

HfValue Number(uint32_t value) { return int64_t{value}; }

// Of Qwen2Config and Qwen3Config. A Llama's are one of each head, and the width divided by the heads.
constexpr uint32_t kQwenKeyValueHeads = 32;
constexpr uint32_t kQwen3HeadDim = 128;

/// Widths and counts, which every file says: transformers' defaults are those of some large model.
void AddSizes(const LlamaOptions& options, const std::string& model_type, std::vector<HfField>& fields) {
  const auto add = [&](const char* name, uint32_t value, const char* setting) {
    fields.push_back(
        {.names = {name}, .value = Number(value), .setting = absl::StrCat("model.llama.", setting)});
  };
  add("vocab_size", options.vocabulary, "vocabulary");
  add("hidden_size", options.width, "width");
  add("intermediate_size", options.intermediate, "intermediate");
  add("num_hidden_layers", options.layers, "layers");
  add("num_attention_heads", options.heads, "heads");
  // Rotary positions have no tensor: a run may use fewer of them than the model was made for.
  fields.push_back({.names = {"max_position_embeddings"},
                    .value = Number(options.context),
                    .setting = "model.llama.context",
                    .compare = HfCompare::kAtLeast});
  HfField groups = {.names = {"num_key_value_heads"},
                    .value = Number(options.key_value_heads()),
                    .setting = "model.llama.kv_heads",
                    .absent = Number(model_type == "llama" ? options.heads : kQwenKeyValueHeads)};
  if (options.key_value_heads() == options.heads) groups.same = {HfValue()};
  fields.push_back(std::move(groups));
  HfField head = {.names = {"head_dim"},
                  .value = Number(options.head_width()),
                  .setting = "model.llama.head_dim",
                  .absent = Number(model_type == "qwen3" ? kQwen3HeadDim : options.width / options.heads)};
  if (options.head_width() == options.width / options.heads) head.same = {HfValue()};
  fields.push_back(std::move(head));
}

/// Written in the form of before transformers 5. Readers that do not know the newer one take theta for 10000.
void AddRotaryPositions(const LlamaOptions& options, std::vector<HfField>& fields) {
  fields.push_back({.names = {"rope_theta", "rope_scaling.rope_theta", "rope_parameters.rope_theta"},
                    .value = options.rope_theta,
                    .setting = "model.llama.rope_theta",
                    .absent = HfValue(10000.0)});
  const RopeScaling& scaling = options.rope_scaling;
  const std::vector<std::string> type = {"rope_scaling.rope_type", "rope_scaling.type",
                                         "rope_parameters.rope_type", "rope_parameters.type"};
  if (scaling.factor == 1) {
    fields.push_back({.names = type,
                      .value = HfValue(),
                      .setting = "model.llama.rope_scaling",
                      .absent = HfValue(),
                      .same = {HfValue(std::string("default"))},
                      .written = false});
    return;
  }
  fields.push_back({.names = type,
                    .value = std::string("llama3"),
                    .setting = "model.llama.rope_scaling",
                    .absent = HfValue()});
  const auto add = [&](const std::string& name, HfValue value, const char* setting) {
    fields.push_back({.names = {"rope_scaling." + name, "rope_parameters." + name},
                      .value = std::move(value),
                      .setting = absl::StrCat("model.llama.rope_scaling.", setting)});
  };
  add("factor", scaling.factor, "factor");
  add("low_freq_factor", scaling.low_freq_factor, "low_freq_factor");
  add("high_freq_factor", scaling.high_freq_factor, "high_freq_factor");
  add("original_max_position_embeddings", Number(scaling.original_context), "original_context");
}

void AddRest(const LlamaOptions& options, const std::string& model_type, std::vector<HfField>& fields) {
  const auto add = [&](const char* name, HfValue value, const char* setting, HfValue absent) {
    fields.push_back(
        {.names = {name}, .value = std::move(value), .setting = setting, .absent = std::move(absent)});
  };
  add("hidden_act", std::string("silu"), "the activation of model.llama", std::string("silu"));
  add("rms_norm_eps", options.rms_norm_epsilon, "model.llama.rms_norm_epsilon", 1e-6);
  add("tie_word_embeddings", options.tied_embeddings, "model.llama.tied_embeddings", false);
  // Qwen2 has the biases of queries, keys and values always, and no field for them.
  if (model_type != "qwen2") add("attention_bias", false, "the attention of model.llama", false);
  if (model_type == "llama") {
    add("mlp_bias", false, "the MLP of model.llama", false);
  } else {
    add("use_sliding_window", false, "the attention of model.llama", false);
    fields.push_back({.names = {"layer_types"},
                      .value = std::string("full_attention"),
                      .setting = "the attention of model.llama",
                      .absent = HfValue(),
                      .same = {HfValue()},
                      .written = false,
                      .compare = HfCompare::kEach});
  }
  AddWritten(fields, "attention_dropout", options.dropout);
}

}  // namespace

std::optional<HfLayout> LlamaLayout(const LlamaOptions& options) {
  if (options.qkv_bias && options.qk_norm) return std::nullopt;
  HfLayout layout = PlainLayout(LlamaManifest(options));
  layout.model_type = options.qkv_bias ? "qwen2" : options.qk_norm ? "qwen3" : "llama";
  layout.architecture = options.qkv_bias  ? "Qwen2ForCausalLM"
                        : options.qk_norm ? "Qwen3ForCausalLM"
                                          : "LlamaForCausalLM";
  layout.prefix = "model.";
  for (uint32_t layer = 0; layer < options.layers; ++layer) {
    // The frequencies of rotary positions, in files of before 2024.
    layout.ignored.push_back(absl::StrCat("model.layers.", layer, ".self_attn.rotary_emb.inv_freq"));
  }
  if (options.tied_embeddings) {
    layout.tied = {.name = "lm_head.weight", .tensor = LlamaTensorIndex(options).embedding};
  }
  AddSizes(options, layout.model_type, layout.fields);
  AddRotaryPositions(options, layout.fields);
  AddRest(options, layout.model_type, layout.fields);
  return layout;
}

}  // namespace atl
