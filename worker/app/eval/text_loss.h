#ifndef ATOLL_WORKER_APP_EVAL_TEXT_LOSS_H_
#define ATOLL_WORKER_APP_EVAL_TEXT_LOSS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "core/token_width.h"
#include "worker/app/eval/scorer.h"
#include "worker/data/tokenizer.h"

namespace atl {

/// A text in tokens, which may be longer than memory.
struct TokenText {
  uint64_t tokens = 0;
  /// Copies tokens [first, first + out.size()).
  std::function<absl::Status(uint64_t first, std::span<TokenId> out)> read;
};

/// Tokens of a text that are read together, and the first of them that is scored.
struct TextWindow {
  uint64_t begin = 0;
  size_t tokens = 0;
  size_t first = 0;
};

/// Window number `index` of a text. Each token but the first is scored in one window. The first window scores
/// `context` tokens, each later one `stride`, and the last one what is left; all of them see as many earlier
/// tokens as the context has room for. With stride == context these are the windows of
/// lm-evaluation-harness. nullopt: there is no such window. Requires 1 <= stride <= context.
std::optional<TextWindow> WindowOf(uint64_t tokens, uint32_t context, uint32_t stride, uint64_t index);

struct TextLoss {
  double total = 0;     // nats
  uint64_t tokens = 0;  // scored
  double mean() const { return total / static_cast<double>(tokens); }
};

/// The loss of a text in windows. `visit`, if there is one, sees the scored tokens, in their order.
absl::StatusOr<TextLoss> MeasureText(const TokenText& text, uint32_t stride, const Scorer& scorer,
                                     const std::function<void(std::span<const TokenId>)>& visit,
                                     const ScoreProgress& progress);

/// Counts the bytes of the text that tokens stand for. Tokens that end a text stand for none. Not
/// thread-safe.
class TextBytes {
 public:
  /// `tokenizer` outlives this.
  TextBytes(const Tokenizer& tokenizer, std::span<const TokenId> endings);
  void Add(std::span<const TokenId> tokens);
  uint64_t bytes() const { return bytes_; }

 private:
  const Tokenizer& tokenizer_;
  std::vector<uint32_t> bytes_of_;  // by token; kUnknown: not asked yet
  uint64_t bytes_ = 0;
};

}  // namespace atl

#endif  // ATOLL_WORKER_APP_EVAL_TEXT_LOSS_H_
