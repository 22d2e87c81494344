#ifndef ATOLL_TESTS_BYZANTINE_TEXT_MODEL_H_
#define ATOLL_TESTS_BYZANTINE_TEXT_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "common/random.h"
#include "core/fragment_plan.h"
#include "core/manifest.h"

namespace atl::byzantine {

/// Text as classes of characters: 26 letters, space, end of line, digits, '.', ',', everything else.
inline constexpr uint32_t kClasses = 32;
std::vector<uint8_t> Classes(std::string_view text);

/// A small language model (Bengio et al. 2003): the next character from the four before it, by an embedding,
/// one hidden layer of tanh and a softmax. Gradients by hand. Parameters lie in one flat vector as the
/// fragment's layout has them.
class TextModel {
 public:
  static constexpr uint32_t kContext = 4;
  static constexpr size_t kWidth = 12;
  static constexpr size_t kHidden = 48;
  static constexpr size_t kInputs = kContext * kWidth;

  static Manifest TheManifest();

  explicit TextModel(const FragmentLayout& layout);

  std::vector<float> Initial(uint64_t seed) const;
  /// Mean loss of predicting text[p] for each position p >= kContext, in nats; adds its gradient to
  /// `gradient` when that is not empty.
  double Loss(std::span<const float> parameters, std::span<const uint8_t> text,
              std::span<const uint32_t> positions, std::span<float> gradient) const;

 private:
  double One(const float* parameters, const uint8_t* next, float scale, float* gradient) const;

  uint64_t elements_;
  uint64_t embedding_, w1_, b1_, w2_, b2_;  // offsets
};

/// A worker's own optimizer: Adam, without decay.
class Adam {
 public:
  explicit Adam(size_t values) : m_(values), v_(values) {}
  void Step(std::span<float> parameters, std::span<const float> gradient, double rate);

 private:
  std::vector<float> m_, v_;
  uint64_t steps_ = 0;
};

}  // namespace atl::byzantine

#endif  // ATOLL_TESTS_BYZANTINE_TEXT_MODEL_H_
