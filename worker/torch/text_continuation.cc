#include "worker/torch/text_continuation.h"

#include <algorithm>
#include <utility>

namespace atl {

TextContinuation::TextContinuation(const LanguageModel& model, std::vector<int64_t> text, uint32_t context,
                                   uint32_t more)
    : model_(model),
      text_(std::move(text)),
      read_(text_.size() - std::min<size_t>(text_.size(), context)),
      cache_(model.MakeCache(static_cast<int64_t>(std::min<size_t>(text_.size() + more, context)))) {}

torch::Tensor TextContinuation::NextLogits(const torch::Device& device) {
  const torch::NoGradGuard no_grad;
  if (cache_.length() == cache_.capacity()) {
    cache_.Clear();
    read_ = text_.size() - std::max<size_t>(1, static_cast<size_t>(cache_.capacity()) / 2);
  }
  const auto unread = static_cast<int64_t>(text_.size() - read_);
  const torch::Tensor tokens =
      torch::from_blob(text_.data() + read_, {1, unread}, torch::kInt64).clone().to(device);
  read_ = text_.size();
  return model_.NextLogits(tokens, cache_)[0].to(torch::kCPU).contiguous();
}

}  // namespace atl
