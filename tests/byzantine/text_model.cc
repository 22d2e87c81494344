#include "tests/byzantine/text_model.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace atl::byzantine {
namespace {

uint8_t ClassOf(char c) {
  if (c >= 'a' && c <= 'z') return static_cast<uint8_t>(c - 'a');
  if (c >= 'A' && c <= 'Z') return static_cast<uint8_t>(c - 'A');
  if (c >= '0' && c <= '9') return 28;
  switch (c) {
    case ' ':
      return 26;
    case '\n':
      return 27;
    case '.':
      return 29;
    case ',':
      return 30;
    default:
      return 31;
  }
}

}  // namespace

std::vector<uint8_t> Classes(std::string_view text) {
  std::vector<uint8_t> classes(text.size());
  std::ranges::transform(text, classes.begin(), ClassOf);
  return classes;
}

Manifest TextModel::TheManifest() {
  Manifest manifest;
  manifest.tensors.push_back({.name = "embedding", .shape = {kClasses, kWidth}, .embedding = true});
  manifest.tensors.push_back({.name = "w1", .shape = {kHidden, kInputs}});
  manifest.tensors.push_back({.name = "b1", .shape = {kHidden}});
  manifest.tensors.push_back({.name = "w2", .shape = {kClasses, kHidden}});
  manifest.tensors.push_back({.name = "b2", .shape = {kClasses}});
  return manifest;
}

TextModel::TextModel(const FragmentLayout& layout) : elements_(layout.elements) {
  std::array<uint64_t*, 5> offsets = {&embedding_, &w1_, &b1_, &w2_, &b2_};
  for (const TensorSlot& slot : layout.slots) *offsets[slot.tensor] = slot.offset;
}

std::vector<float> TextModel::Initial(uint64_t seed) const {
  std::vector<float> parameters(elements_);
  SplitMixGenerator random(seed);
  const auto fill = [&](uint64_t offset, size_t count, double scale) {
    for (size_t i = 0; i < count; ++i) {
      parameters[offset + i] = static_cast<float>(scale * (2 * random.Uniform() - 1));
    }
  };
  fill(embedding_, kClasses * kWidth, 0.5);
  fill(w1_, kHidden * kInputs, 1 / std::sqrt(double{kInputs}));
  fill(w2_, kClasses * kHidden, 1 / std::sqrt(double{kHidden}));
  return parameters;
}

double TextModel::One(const float* p, const uint8_t* next, float scale, float* g) const {
  std::array<float, kInputs> x;
  for (uint32_t c = 0; c < kContext; ++c) {
    std::copy_n(p + embedding_ + next[-1 - static_cast<int>(c)] * kWidth, kWidth, x.data() + c * kWidth);
  }
  std::array<float, kHidden> h;
  for (uint32_t i = 0; i < kHidden; ++i) {
    float sum = p[b1_ + i];
    const float* row = p + w1_ + i * kInputs;
    for (uint32_t k = 0; k < kInputs; ++k) sum += row[k] * x[k];
    h[i] = std::tanh(sum);
  }
  std::array<float, kClasses> y;
  float largest = -1e30F;
  for (uint32_t o = 0; o < kClasses; ++o) {
    float sum = p[b2_ + o];
    const float* row = p + w2_ + o * kHidden;
    for (uint32_t i = 0; i < kHidden; ++i) sum += row[i] * h[i];
    y[o] = sum;
    largest = std::max(largest, sum);
  }
  float all = 0;
  for (float& value : y) all += value = std::exp(value - largest);
  const double loss = -std::log(std::max(1e-30, double{y[next[0]]} / double{all}));
  if (g == nullptr) return loss;
  std::array<float, kHidden> dh{};
  for (uint32_t o = 0; o < kClasses; ++o) {
    const float dy = scale * (y[o] / all - (o == next[0] ? 1.0F : 0.0F));
    g[b2_ + o] += dy;
    const float* row = p + w2_ + o * kHidden;
    float* grow = g + w2_ + o * kHidden;
    for (uint32_t i = 0; i < kHidden; ++i) {
      grow[i] += dy * h[i];
      dh[i] += dy * row[i];
    }
  }
  std::array<float, kInputs> dx{};
  for (uint32_t i = 0; i < kHidden; ++i) {
    const float da = dh[i] * (1 - h[i] * h[i]);
    g[b1_ + i] += da;
    const float* row = p + w1_ + i * kInputs;
    float* grow = g + w1_ + i * kInputs;
    for (uint32_t k = 0; k < kInputs; ++k) {
      grow[k] += da * x[k];
      dx[k] += da * row[k];
    }
  }
  for (uint32_t c = 0; c < kContext; ++c) {
    float* row = g + embedding_ + next[-1 - static_cast<int>(c)] * kWidth;
    for (uint32_t k = 0; k < kWidth; ++k) row[k] += dx[c * kWidth + k];
  }
  return loss;
}

double TextModel::Loss(std::span<const float> parameters, std::span<const uint8_t> text,
                       std::span<const uint32_t> positions, std::span<float> gradient) const {
  double sum = 0;
  const float scale = 1.0F / static_cast<float>(positions.size());
  float* const g = gradient.empty() ? nullptr : gradient.data();
  for (const uint32_t position : positions) sum += One(parameters.data(), text.data() + position, scale, g);
  return sum / static_cast<double>(positions.size());
}

void Adam::Step(std::span<float> parameters, std::span<const float> gradient, double rate) {
  ++steps_;
  const auto t = static_cast<double>(steps_);
  const auto step = static_cast<float>(rate * std::sqrt(1 - std::pow(0.99, t)) / (1 - std::pow(0.9, t)));
  for (size_t i = 0; i < parameters.size(); ++i) {
    m_[i] = 0.9F * m_[i] + 0.1F * gradient[i];
    v_[i] = 0.99F * v_[i] + 0.01F * gradient[i] * gradient[i];
    parameters[i] -= step * m_[i] / (std::sqrt(v_[i]) + 1e-8F);
  }
}

}  // namespace atl::byzantine
