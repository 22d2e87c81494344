#ifndef ATOLL_WORKER_APP_TEXT_STREAM_H_
#define ATOLL_WORKER_APP_TEXT_STREAM_H_

#include <cstddef>
#include <string>
#include <vector>

#include "core/token_width.h"
#include "worker/data/tokenizer.h"

namespace atl {

/// Turns tokens into text that can be shown as they come: whole characters only, and nothing of what could
/// become one of the stop texts. The text ends before the first stop text. Not thread-safe.
class TextStream {
 public:
  /// `tokenizer` outlives this. No stop text is empty.
  TextStream(const Tokenizer& tokenizer, std::vector<std::string> stops);

  /// The text that the token makes certain; often empty.
  std::string Add(TokenId token);

  /// What was held back. Call it once, at the end.
  std::string Finish();

  /// Whether a stop text came. Add() returns nothing from then on.
  bool stopped() const { return stopped_; }

 private:
  /// Bytes at the end of held_ that may belong to a stop text or to a character that is not complete.
  size_t Uncertain() const;

  const Tokenizer& tokenizer_;
  const std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace atl

#endif  // ATOLL_WORKER_APP_TEXT_STREAM_H_
