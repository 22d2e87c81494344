#include "core/gpt_shape.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace atl {
namespace {

void AddPair(Manifest& manifest, const std::string& name, std::vector<int64_t> shape, bool bias) {
  const int64_t outputs = shape.back();
  manifest.tensors.push_back({name + ".weight", std::move(shape), false});
  if (bias) manifest.tensors.push_back({name + ".bias", {outputs}, false});
}

}  // namespace

Manifest GptManifest(const GptOptions& options) {
  const int64_t width = options.width;
  Manifest manifest;
  manifest.tensors.push_back({"transformer.wte.weight", {int64_t{options.vocabulary}, width}, true});
  manifest.tensors.push_back({"transformer.wpe.weight", {int64_t{options.context}, width}, true});
  for (uint32_t layer = 0; layer < options.layers; ++layer) {
    const std::string block = absl::StrCat("transformer.h.", layer, ".");
    AddPair(manifest, block + "ln_1", {width}, options.bias);
    AddPair(manifest, block + "attn.c_attn", {width, 3 * width}, options.bias);
    AddPair(manifest, block + "attn.c_proj", {width, width}, options.bias);
    AddPair(manifest, block + "ln_2", {width}, options.bias);
    AddPair(manifest, block + "mlp.c_fc", {width, 4 * width}, options.bias);
    AddPair(manifest, block + "mlp.c_proj", {4 * width, width}, options.bias);
  }
  AddPair(manifest, "transformer.ln_f", {width}, options.bias);
  if (!options.tied_embeddings) {
    manifest.tensors.push_back({"lm_head.weight", {int64_t{options.vocabulary}, width}, false});
  }
  return manifest;
}

GptTensorIndex::GptTensorIndex(const GptOptions& options) : wte(0), wpe(1), stride_(options.bias ? 2 : 1) {
  ln_f = 2 + 6 * stride_ * options.layers;
  ln_f_bias = ln_f + 1;
  lm_head = options.tied_embeddings ? wte : ln_f + stride_;
}

GptTensorIndex::Block GptTensorIndex::block(size_t layer) const {
  const size_t first = 2 + 6 * stride_ * layer;
  const auto weight = [&](size_t kind) { return first + kind * stride_; };
  const auto bias = [&](size_t kind) { return first + kind * stride_ + 1; };
  return Block{weight(0), bias(0), weight(1), bias(1), weight(2), bias(2),
               weight(3), bias(3), weight(4), bias(4), weight(5), bias(5)};
}

std::optional<ModelProblem> GptShape::FindProblem() const {
  if (options_.heads > 0 && options_.width % options_.heads == 0) return std::nullopt;
  return ModelProblem{"heads", absl::StrCat(options_.heads, " does not divide ", section(),
                                            ".width, which is ", options_.width)};
}

std::vector<ModelSetting> GptShape::FixedSettings() const {
  const auto number = [](uint32_t value) { return absl::StrCat(value); };
  const auto truth = [](bool value) { return std::string(value ? "true" : "false"); };
  return {{"layers", number(options_.layers)},
          {"heads", number(options_.heads)},
          {"width", number(options_.width)},
          {"context", number(options_.context)},
          {"vocabulary", number(options_.vocabulary)},
          {"tied_embeddings", truth(options_.tied_embeddings)},
          {"bias", truth(options_.bias)}};
}

uint64_t GptShape::BlockBytesPerToken(Precision precision) const {
  const uint64_t bytes = 34 * uint64_t{options_.width} + 5 * uint64_t{options_.heads} * options_.context;
  return bytes * (precision == Precision::kBf16 ? 1 : 2);
}

double GptShape::TrainingFlopsPerToken() const {
  const double width = options_.width;
  const double weights = 12.0 * options_.layers * width * width + options_.vocabulary * width;
  return 6 * weights + 12.0 * options_.layers * width * options_.context;
}

}  // namespace atl
