#include "core/hf/gpt2_layout.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "core/gpt_shape.h"

namespace atl {
namespace {

constexpr char kBiasEnd[] = ".bias";

/// The biases that transformers has and a run without biases has not.
std::vector<HfTensor> MissingBiases(const GptOptions& options) {
  GptOptions with_biases = options;
  with_biases.bias = true;
  std::vector<HfTensor> biases;
  for (const TensorSpec& tensor : GptManifest(with_biases).tensors) {
    if (tensor.name.ends_with(kBiasEnd)) biases.push_back({.name = tensor.name, .shape = tensor.shape});
  }
  return biases;
}

/// What decides how the tensors are used; the defaults are those of GPT2Config.
std::vector<HfField> ComparedFields(const GptOptions& options) {
  const auto number = [](uint32_t value) { return HfValue(int64_t{value}); };
  const int64_t inner = 4 * int64_t{options.width};
  return {
      {{"vocab_size"}, number(options.vocabulary), "model.gpt.vocabulary", HfValue(int64_t{50257})},
      {{"n_positions", "max_position_embeddings"},
       number(options.context),
       "model.gpt.context",
       HfValue(int64_t{1024})},
      {{"n_embd", "hidden_size"}, number(options.width), "model.gpt.width", HfValue(int64_t{768})},
      {{"n_layer", "num_hidden_layers"}, number(options.layers), "model.gpt.layers", HfValue(int64_t{12})},
      {{"n_head", "num_attention_heads"}, number(options.heads), "model.gpt.heads", HfValue(int64_t{12})},
      {{"n_inner"}, HfValue(inner), "4 * model.gpt.width", HfValue(), {HfValue()}},
      {{"activation_function"},
       HfValue(std::string("gelu_new")),
       "the activation of model.gpt",
       HfValue(std::string("gelu_new")),
       {HfValue(std::string("gelu_pytorch_tanh"))}},
      {{"layer_norm_epsilon"}, HfValue(1e-5), "the epsilon of model.gpt", HfValue(1e-5)},
      {{"tie_word_embeddings"}, HfValue(options.tied_embeddings), "model.gpt.tied_embeddings", HfValue(true)},
      {{"scale_attn_weights"}, HfValue(true), "the attention of model.gpt", HfValue(true)},
      {{"scale_attn_by_inverse_layer_idx"}, HfValue(false), "the attention of model.gpt", HfValue(false)},
      {{"add_cross_attention"}, HfValue(false), "the attention of model.gpt", HfValue(false)},
  };
}

}  // namespace

HfLayout Gpt2Layout(const GptOptions& options) {
  HfLayout layout = PlainLayout(GptManifest(options));
  layout.model_type = "gpt2";
  layout.architecture = "GPT2LMHeadModel";
  layout.prefix = "transformer.";
  if (!options.bias) layout.zeros = MissingBiases(options);
  for (uint32_t layer = 0; layer < options.layers; ++layer) {
    const std::string attention = absl::StrCat("transformer.h.", layer, ".attn.");
    layout.ignored.push_back(attention + "bias");         // the causal mask
    layout.ignored.push_back(attention + "masked_bias");  // what masked scores are set to
  }
  if (options.tied_embeddings)
    layout.tied = {.name = "lm_head.weight", .tensor = GptTensorIndex(options).wte};
  layout.fields = ComparedFields(options);
  AddWritten(layout.fields, "n_ctx", int64_t{options.context});  // llama.cpp's converter reads it
  for (const char* const dropout : {"attn_pdrop", "embd_pdrop", "resid_pdrop"}) {
    AddWritten(layout.fields, dropout, options.dropout);
  }
  return layout;
}

}  // namespace atl
