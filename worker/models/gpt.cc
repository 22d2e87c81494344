#include "worker/models/gpt.h"

#include <cmath>
#include <string_view>
#include <vector>

#include "worker/torch/attention.h"
#include "worker/torch/gelu.h"
#include "worker/torch/head_loss.h"
#include "worker/torch/recompute.h"

namespace atl {
namespace {

constexpr double kLayerNormEpsilon = 1e-5;
constexpr double kInitDeviation = 0.02;

bool EndsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

}  // namespace

Gpt::Gpt(const GptOptions& options, Precision precision, FlatParameters& parameters, Activations activations)
    : options_(options),
      precision_(precision),
      activations_(activations),
      parameters_(parameters),
      index_(options) {}

void Gpt::Initialise(uint64_t seed) {
  const torch::NoGradGuard no_grad;
  auto generator = at::detail::createCPUGenerator(seed);
  const double residual = kInitDeviation / std::sqrt(2.0 * options_.layers);
  const Manifest& manifest = parameters_.manifest();
  for (size_t i = 0; i < manifest.tensors.size(); ++i) {
    const TensorSpec& spec = manifest.tensors[i];
    torch::Tensor view = parameters_.view(i);
    if (spec.shape.size() < 2) {
      view.fill_(EndsWith(spec.name, ".weight") ? 1.0 : 0.0);
      continue;
    }
    torch::Tensor drawn = torch::empty(spec.shape, torch::kFloat32);
    drawn.normal_(0.0, EndsWith(spec.name, "c_proj.weight") ? residual : kInitDeviation, generator);
    view.copy_(drawn);
  }
}

torch::Tensor Gpt::Dropout(const torch::Tensor& x, ModelMode mode) const {
  if (options_.dropout == 0 || mode == ModelMode::kEvaluation) return x;
  return torch::dropout(x, options_.dropout, /*train=*/true);
}

torch::Tensor Gpt::LayerNorm(const torch::Tensor& x, size_t gain, size_t bias) const {
  // An undefined tensor is no shift.
  const torch::Tensor shift = options_.bias ? parameters_.view(bias) : torch::Tensor();
  return torch::layer_norm(x, {x.size(-1)}, parameters_.view(gain), shift, kLayerNormEpsilon);
}

torch::Tensor Gpt::Linear(const torch::Tensor& x, size_t weight, size_t bias) const {
  if (precision_ == Precision::kFp32) {
    if (!options_.bias) return torch::mm(x, parameters_.view(weight));
    return torch::addmm(parameters_.view(bias), x, parameters_.view(weight));
  }
  const torch::Tensor input = x.to(torch::kBFloat16);
  const torch::Tensor matrix = parameters_.view(weight).to(torch::kBFloat16);
  if (!options_.bias) return torch::mm(input, matrix);
  return torch::addmm(parameters_.view(bias).to(torch::kBFloat16), input, matrix);
}

torch::Tensor Gpt::Attention(const torch::Tensor& x, size_t layer, int64_t batch,
                             const Reading& reading) const {
  const GptTensorIndex::Block block = index_.block(layer);
  const int64_t width = options_.width;
  const int64_t heads = options_.heads;
  const torch::Tensor qkv =
      Linear(x, block.c_attn, block.c_attn_bias).view({batch, x.size(0) / batch, 3, heads, width / heads});
  const double dropout = reading.mode == ModelMode::kTraining ? options_.dropout : 0.0;
  const auto mix = [&] {
    if (reading.cache == nullptr && !reading.documents) return CausalAttention(qkv, dropout);
    const std::vector<torch::Tensor> parts = qkv.unbind(2);
    if (reading.cache != nullptr) return CausalAttention(parts[0], parts[1], parts[2], *reading.cache, layer);
    return CausalAttention(parts[0], parts[1], parts[2], dropout, reading.documents->penalties);
  };
  const torch::Tensor mixed = mix();
  return Linear(mixed.view(x.sizes()), block.attn_proj, block.attn_proj_bias);
}

torch::Tensor Gpt::Mlp(const torch::Tensor& x, const GptTensorIndex::Block& block) const {
  const torch::Tensor hidden = Gelu(Linear(x, block.c_fc, block.c_fc_bias));
  return Linear(hidden, block.mlp_proj, block.mlp_proj_bias);
}

torch::Tensor Gpt::Block(const torch::Tensor& x, size_t layer, int64_t batch, const Reading& reading) const {
  const GptTensorIndex::Block block = index_.block(layer);
  const torch::Tensor attended = Attention(LayerNorm(x, block.ln_1, block.ln_1_bias), layer, batch, reading);
  const torch::Tensor middle = x + Dropout(attended, reading.mode);
  return middle + Dropout(Mlp(LayerNorm(middle, block.ln_2, block.ln_2_bias), block), reading.mode);
}

torch::Tensor Gpt::Blocks(const torch::Tensor& tokens, const Reading& reading) const {
  const int64_t batch = tokens.size(0);
  const int64_t time = tokens.size(1);
  const int64_t first = reading.cache == nullptr ? 0 : reading.cache->length();
  const torch::Tensor all_positions = parameters_.view(index_.wpe);
  const torch::Tensor positions = reading.documents
                                      ? torch::embedding(all_positions, reading.documents->positions)
                                      : all_positions.narrow(0, first, time);
  torch::Tensor x = torch::embedding(parameters_.view(index_.wte), tokens) + positions;
  x = Dropout(x, reading.mode).view({batch * time, int64_t{options_.width}});
  for (size_t layer = 0; layer < options_.layers; ++layer) {
    if (activations_ == Activations::kKept || !x.requires_grad()) {
      x = Block(x, layer, batch, reading);
      continue;
    }
    const auto block = [=, this](const torch::Tensor& in) { return Block(in, layer, batch, reading); };
    const bool draws = reading.mode == ModelMode::kTraining && draws_random_numbers();
    x = Recomputed(block, x, draws ? Draws::kRandomNumbers : Draws::kNothing);
  }
  return x;
}

torch::Tensor Gpt::Head(const torch::Tensor& x) const {
  return HeadLogits(LayerNorm(x, index_.ln_f, index_.ln_f_bias), parameters_.view(index_.lm_head),
                    precision_);
}

torch::Tensor Gpt::Logits(const torch::Tensor& tokens, ModelMode mode) const {
  return Head(Blocks(tokens, {.mode = mode}));
}

torch::Tensor Gpt::NextLogits(const torch::Tensor& tokens, KeyValueCache& cache) const {
  const torch::Tensor x = Blocks(tokens, {.cache = &cache}).view({tokens.size(0), tokens.size(1), -1});
  cache.Advance(tokens.size(1));
  return Head(x.select(1, -1));
}

torch::Tensor Gpt::Loss(const torch::Tensor& tokens, const torch::Tensor& targets, ModelMode mode) const {
  const torch::Tensor x = Blocks(tokens, {.mode = mode});
  return NextTokenLoss(LayerNorm(x, index_.ln_f, index_.ln_f_bias), parameters_.view(index_.lm_head), targets,
                       precision_);
}

torch::Tensor Gpt::LossOfDocuments(const torch::Tensor& tokens, const torch::Tensor& targets,
                                   const DocumentLayout& documents, ModelMode mode) const {
  const torch::Tensor x = Blocks(tokens, {.mode = mode, .documents = documents});
  return CountedTokenLoss(LayerNorm(x, index_.ln_f, index_.ln_f_bias), parameters_.view(index_.lm_head),
                          targets, precision_);
}

}  // namespace atl
