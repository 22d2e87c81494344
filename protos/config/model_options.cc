#include "protos/config/model_options.h"

#include <variant>

namespace atl {
namespace {

GptOptions GptOptionsOf(const v1::GptModel& gpt) {
  GptOptions options;
  options.layers = gpt.layers();
  options.heads = gpt.heads();
  options.width = gpt.width();
  options.context = gpt.context();
  options.vocabulary = gpt.vocabulary();
  options.tied_embeddings = gpt.tied_embeddings();
  options.dropout = gpt.dropout();
  options.bias = gpt.bias();
  return options;
}

RopeScaling RopeScalingOf(const v1::RopeScaling& scaling) {
  return {.factor = scaling.factor(),
          .low_freq_factor = scaling.low_freq_factor(),
          .high_freq_factor = scaling.high_freq_factor(),
          .original_context = scaling.original_context()};
}

LlamaOptions LlamaOptionsOf(const v1::LlamaModel& llama) {
  LlamaOptions options;
  options.layers = llama.layers();
  options.heads = llama.heads();
  options.kv_heads = llama.kv_heads();
  options.head_dim = llama.head_dim();
  options.width = llama.width();
  options.intermediate = llama.intermediate();
  options.context = llama.context();
  options.vocabulary = llama.vocabulary();
  options.rope_theta = llama.rope_theta();
  options.rope_scaling = RopeScalingOf(llama.rope_scaling());
  options.rms_norm_epsilon = llama.rms_norm_epsilon();
  options.tied_embeddings = llama.tied_embeddings();
  options.qkv_bias = llama.qkv_bias();
  options.qk_norm = llama.qk_norm();
  options.dropout = llama.dropout();
  return options;
}

ExternalOptions ExternalOptionsOf(const v1::ExternalModel& external) {
  return {.context = external.context(), .parameters = external.parameters()};
}

ExternalOptions ScriptOptionsOf(const v1::TorchScriptModel& script) {
  return {.context = script.context(),
          .parameters = script.parameters(),
          .vocabulary = script.vocabulary(),
          .script = script.file()};
}

/// One function per family.
struct WriteSection {
  void operator()(const GptOptions& options) const {
    v1::GptModel& gpt = *section.mutable_gpt();
    gpt.set_layers(options.layers);
    gpt.set_heads(options.heads);
    gpt.set_width(options.width);
    gpt.set_context(options.context);
    gpt.set_vocabulary(options.vocabulary);
    gpt.set_tied_embeddings(options.tied_embeddings);
    gpt.set_dropout(options.dropout);
    gpt.set_bias(options.bias);
  }
  void operator()(const LlamaOptions& options) const {
    v1::LlamaModel& llama = *section.mutable_llama();
    llama.set_layers(options.layers);
    llama.set_heads(options.heads);
    llama.set_kv_heads(options.kv_heads);
    llama.set_head_dim(options.head_dim);
    llama.set_width(options.width);
    llama.set_intermediate(options.intermediate);
    llama.set_context(options.context);
    llama.set_vocabulary(options.vocabulary);
    llama.set_rope_theta(options.rope_theta);
    v1::RopeScaling& scaling = *llama.mutable_rope_scaling();
    scaling.set_factor(options.rope_scaling.factor);
    scaling.set_low_freq_factor(options.rope_scaling.low_freq_factor);
    scaling.set_high_freq_factor(options.rope_scaling.high_freq_factor);
    scaling.set_original_context(options.rope_scaling.original_context);
    llama.set_rms_norm_epsilon(options.rms_norm_epsilon);
    llama.set_tied_embeddings(options.tied_embeddings);
    llama.set_qkv_bias(options.qkv_bias);
    llama.set_qk_norm(options.qk_norm);
    llama.set_dropout(options.dropout);
  }
  void operator()(const ExternalOptions& options) const {
    if (!options.script.empty()) {
      v1::TorchScriptModel& script = *section.mutable_torchscript();
      script.set_file(options.script);
      script.set_context(options.context);
      script.set_vocabulary(options.vocabulary);
      script.set_parameters(options.parameters);
      return;
    }
    section.mutable_external()->set_context(options.context);
    section.mutable_external()->set_parameters(options.parameters);
  }

  v1::ModelSection& section;
};

}  // namespace

ModelOptions ModelOptionsOf(const v1::ModelSection& model) {
  if (model.has_torchscript()) return ModelOptions(ScriptOptionsOf(model.torchscript()));
  if (model.has_external()) return ModelOptions(ExternalOptionsOf(model.external()));
  if (model.has_llama()) return ModelOptions(LlamaOptionsOf(model.llama()));
  return GptOptionsOf(model.gpt());
}

v1::ModelSection ModelSectionOf(const ModelOptions& model) {
  v1::ModelSection section;
  std::visit(WriteSection{section}, model.family());
  return section;
}

}  // namespace atl
