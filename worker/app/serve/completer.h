#ifndef ATOLL_WORKER_APP_SERVE_COMPLETER_H_
#define ATOLL_WORKER_APP_SERVE_COMPLETER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/app/loaded_model.h"
#include "worker/app/serve/completion_request.h"
#include "worker/data/tokenizer.h"
#include "worker/torch/token_scores.h"

namespace atl {

/// One completion.
struct Completion {
  std::string text;      // with the prompt, if the request asks for it; may hold bytes that are no UTF-8
  bool stopped = false;  // by a stop text or a token that ends a text; else by max_tokens
  size_t prompt_tokens = 0;
  /// The prompt's (with echo) and the drawn ones, with the one that ended the text.
  std::vector<TokenId> tokens;
  size_t drawn = 0;  // of them
  /// Of `tokens`, if the request asks for it; with echo the first token has none.
  std::optional<TokenScores> scores;
};

/// Answers requests with one model. One thread owns it.
class Completer {
 public:
  /// `tokenizer`: null if there is none.
  Completer(LoadedModel model, std::unique_ptr<Tokenizer> tokenizer);

  const CompletionBounds& bounds() const { return bounds_; }
  const Tokenizer* tokenizer() const { return tokenizer_.get(); }

  /// The completion of each prompt, in their order. `check` is called again and again; its error ends the
  /// work, and is returned.
  absl::StatusOr<std::vector<Completion>> Complete(const CompletionRequest& request,
                                                   const std::function<absl::Status()>& check);

 private:
  using Check = std::function<absl::Status()>;

  /// Each sees the prompts [begin, begin + count) and fills their completions.
  absl::Status Draw(const CompletionRequest& request, size_t prompt, const Check& check,
                    Completion& completion);
  absl::Status Score(const CompletionRequest& request, size_t begin, std::span<Completion> completions);
  /// Draw and Score at once, for the most common request of an evaluation: the likeliest token after each
  /// prompt, and the scores of all.
  absl::Status ScoreAndDrawOne(const CompletionRequest& request, size_t begin,
                               std::span<Completion> completions);
  bool Ends(TokenId token) const;
  /// The text of the drawn tokens, and whether it ended.
  void SetText(const CompletionRequest& request, const std::vector<TokenId>& prompt,
               Completion& completion) const;

  const LoadedModel model_;
  const std::unique_ptr<Tokenizer> tokenizer_;
  const CompletionBounds bounds_;
};

}  // namespace atl

#endif  // ATOLL_WORKER_APP_SERVE_COMPLETER_H_
