#ifndef ATOLL_WORKER_TORCH_TEXT_SCORING_H_
#define ATOLL_WORKER_TORCH_TEXT_SCORING_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "worker/torch/language_model.h"
#include "worker/torch/libtorch.h"
#include "worker/torch/token_scores.h"

namespace atl {

/// InvalidArgument when the text is empty or longer than context + 1, `first` is outside it, or a token is
/// outside the vocabulary.
absl::Status CheckScoreRequest(const ScoreRequest& request, uint32_t context, uint32_t vocabulary);

/// Scores each text as if it were alone. Texts of similar length are read together; shorter ones are padded
/// at their end, where causal attention does not look. The softmax is in float32. Requires what ScoreRequest
/// says (CheckScoreRequest). nullopt: `options.interrupted` has ended it. Throws what LibTorch
/// throws.
std::optional<std::vector<TokenScores>> ScoreTexts(const LanguageModel& model,
                                                   std::span<const ScoreRequest> requests,
                                                   const ScoreOptions& options, uint32_t vocabulary,
                                                   int64_t context, const torch::Device& device);

}  // namespace atl

#endif  // ATOLL_WORKER_TORCH_TEXT_SCORING_H_
