#include "worker/models/llama.h"

#include <string>

#include "worker/torch/attention.h"
#include "worker/torch/head_loss.h"
#include "worker/torch/recompute.h"

namespace atl {
namespace {

constexpr double kMatrixDeviation = 0.02;

}  // namespace

Llama::Llama(const LlamaOptions& options, Precision precision, FlatParameters& parameters,
             Activations activations)
    : options_(options),
      precision_(precision),
      activations_(activations),
      parameters_(parameters),
      index_(options),
      positions_(RotaryFrequencies(options.head_width(), options.rope_theta, options.rope_scaling),
                 options.context, parameters.device()) {}

void Llama::Initialise(uint64_t seed) {
  const torch::NoGradGuard no_grad;
  auto generator = at::detail::createCPUGenerator(seed);
  const Manifest& manifest = parameters_.manifest();
  for (size_t i = 0; i < manifest.tensors.size(); ++i) {
    const TensorSpec& spec = manifest.tensors[i];
    torch::Tensor view = parameters_.view(i);
    if (spec.shape.size() < 2) {
      view.fill_(spec.name.ends_with(".weight") ? 1.0 : 0.0);
      continue;
    }
    torch::Tensor drawn = torch::empty(spec.shape, torch::kFloat32);
    drawn.normal_(0.0, kMatrixDeviation, generator);
    view.copy_(drawn);
  }
}

torch::Tensor Llama::RmsNorm(const torch::Tensor& x, size_t gain) const {
  const torch::Tensor wide = x.to(torch::kFloat32);
  const torch::Tensor scale =
      torch::rsqrt(wide.pow(2).mean({-1}, /*keepdim=*/true) + options_.rms_norm_epsilon);
  // The gain comes after the cast, so the result is float32 again.
  return parameters_.view(gain) * (wide * scale).to(x.scalar_type());
}

torch::Tensor Llama::Linear(const torch::Tensor& x, size_t weight, std::optional<size_t> bias) const {
  // An undefined tensor is no bias.
  const torch::Tensor shift = bias ? parameters_.view(*bias) : torch::Tensor();
  if (precision_ == Precision::kFp32) return torch::linear(x, parameters_.view(weight), shift);
  return torch::linear(x.to(torch::kBFloat16), parameters_.view(weight).to(torch::kBFloat16),
                       bias ? shift.to(torch::kBFloat16) : shift);
}

torch::Tensor Llama::Attention(const torch::Tensor& x, size_t layer, int64_t batch,
                               const Reading& reading) const {
  const LlamaTensorIndex::Block block = index_.block(layer);
  const int64_t rows = x.size(0);
  const auto project = [&](size_t weight, size_t bias, int64_t heads) {
    const torch::Tensor projected = Linear(x, weight, options_.qkv_bias ? std::optional(bias) : std::nullopt);
    return projected.view({batch, rows / batch, heads, int64_t{options_.head_width()}});
  };
  const int64_t heads = options_.heads;
  const int64_t groups = options_.key_value_heads();
  torch::Tensor q = project(block.q, block.q_bias, heads);
  torch::Tensor k = project(block.k, block.k_bias, groups);
  const torch::Tensor v = project(block.v, block.v_bias, groups);
  if (options_.qk_norm) {
    q = RmsNorm(q, block.q_norm);
    k = RmsNorm(k, block.k_norm);
  }
  const int64_t first = reading.cache == nullptr ? 0 : reading.cache->length();
  const auto rotate = [&](const torch::Tensor& of) {
    const torch::Tensor turned = reading.documents ? positions_.Rotate(of, reading.documents->positions)
                                                   : positions_.Rotate(of, first);
    return turned.to(v.scalar_type());
  };
  q = rotate(q);
  k = rotate(k);
  const double dropout = reading.mode == ModelMode::kTraining ? options_.dropout : 0.0;
  const auto mix = [&] {
    if (reading.cache != nullptr) return CausalAttention(q, k, v, *reading.cache, layer);
    if (reading.documents) return CausalAttention(q, k, v, dropout, reading.documents->penalties);
    return CausalAttention(q, k, v, dropout);
  };
  const torch::Tensor mixed = mix();
  return Linear(mixed.view({rows, -1}), block.o);
}

torch::Tensor Llama::Mlp(const torch::Tensor& x, const LlamaTensorIndex::Block& block) const {
  return Linear(torch::silu(Linear(x, block.gate)) * Linear(x, block.up), block.down);
}

torch::Tensor Llama::Block(const torch::Tensor& x, size_t layer, int64_t batch,
                           const Reading& reading) const {
  const LlamaTensorIndex::Block block = index_.block(layer);
  const torch::Tensor middle = x + Attention(RmsNorm(x, block.input_norm), layer, batch, reading);
  return middle + Mlp(RmsNorm(middle, block.post_attention_norm), block);
}

torch::Tensor Llama::Blocks(const torch::Tensor& tokens, const Reading& reading) const {
  const int64_t batch = tokens.size(0);
  torch::Tensor x = torch::embedding(parameters_.view(index_.embedding), tokens)
                        .view({batch * tokens.size(1), int64_t{options_.width}});
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

torch::Tensor Llama::Head(const torch::Tensor& x) const {
  return HeadLogits(RmsNorm(x, index_.norm), parameters_.view(index_.lm_head), precision_);
}

torch::Tensor Llama::Logits(const torch::Tensor& tokens, ModelMode mode) const {
  return Head(Blocks(tokens, {.mode = mode}));
}

torch::Tensor Llama::NextLogits(const torch::Tensor& tokens, KeyValueCache& cache) const {
  const torch::Tensor x = Blocks(tokens, {.cache = &cache}).view({tokens.size(0), tokens.size(1), -1});
  cache.Advance(tokens.size(1));
  return Head(x.select(1, -1));
}

torch::Tensor Llama::Loss(const torch::Tensor& tokens, const torch::Tensor& targets, ModelMode mode) const {
  const torch::Tensor x = Blocks(tokens, {.mode = mode});
  return NextTokenLoss(RmsNorm(x, index_.norm), parameters_.view(index_.lm_head), targets, precision_);
}

torch::Tensor Llama::LossOfDocuments(const torch::Tensor& tokens, const torch::Tensor& targets,
                                     const DocumentLayout& documents, ModelMode mode) const {
  const torch::Tensor x = Blocks(tokens, {.mode = mode, .documents = documents});
  return CountedTokenLoss(RmsNorm(x, index_.norm), parameters_.view(index_.lm_head), targets, precision_);
}

}  // namespace atl
