#ifndef ATOLL_WORKER_APP_TOKEN_OUTPUT_H_
#define ATOLL_WORKER_APP_TOKEN_OUTPUT_H_

#include <cstdio>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/token_width.h"
#include "worker/app/text_stream.h"
#include "worker/data/tokenizer.h"

namespace atl {

/// Shows tokens while they are drawn.
class TokenOutput {
 public:
  virtual ~TokenOutput() = default;
  /// Shows what is known after this token. False: no more are wanted.
  virtual bool Take(TokenId token) = 0;
  /// Shows the rest and ends the line. The first error of a write, also of an earlier one.
  virtual absl::Status Finish() = 0;
};

/// As text, which begins with the prompt.
class TextOutput final : public TokenOutput {
 public:
  /// `tokenizer` and `out` outlive this.
  TextOutput(const Tokenizer& tokenizer, const std::string& prompt, std::vector<std::string> stops,
             std::FILE* out);
  bool Take(TokenId token) override;
  absl::Status Finish() override;

 private:
  TextStream stream_;
  std::FILE* const out_;
  absl::Status status_;
};

/// As numbers with a space between them, without the prompt.
class NumberOutput final : public TokenOutput {
 public:
  explicit NumberOutput(std::FILE* out) : out_(out) {}
  bool Take(TokenId token) override;
  absl::Status Finish() override;

 private:
  std::FILE* const out_;
  bool first_ = true;
  absl::Status status_;
};

}  // namespace atl

#endif  // ATOLL_WORKER_APP_TOKEN_OUTPUT_H_
