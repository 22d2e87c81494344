#ifndef ATOLL_WORKER_TORCH_TEXT_CONTINUATION_H_
#define ATOLL_WORKER_TORCH_TEXT_CONTINUATION_H_

#include <cstdint>
#include <vector>

#include "core/token_width.h"
#include "worker/torch/key_value_cache.h"
#include "worker/torch/language_model.h"
#include "worker/torch/libtorch.h"

namespace atl {

/// A text that a model reads token by token. The model sees a window of at most `context` tokens that ends
/// with the newest one. A full window begins again with the newest half of its tokens, which are then read
/// together: each token is read twice at most. Not thread-safe. Methods throw what LibTorch throws.
class TextContinuation {
 public:
  /// `text` has a token; `more` may follow it, and memory for as many is taken. `model` outlives this.
  TextContinuation(const LanguageModel& model, std::vector<int64_t> text, uint32_t context, uint32_t more);

  /// The logits of the token that follows the text: float32 on the CPU, [vocabulary]. Needs a token that it
  /// has not read.
  torch::Tensor NextLogits(const torch::Device& device);

  void Append(TokenId token) { text_.push_back(token); }

 private:
  const LanguageModel& model_;
  std::vector<int64_t> text_;
  size_t read_;  // tokens before this position are read, or out of the window
  KeyValueCache cache_;
};

}  // namespace atl

#endif  // ATOLL_WORKER_TORCH_TEXT_CONTINUATION_H_
