#ifndef ATOLL_WORKER_APP_SERVE_COMPLETION_REQUEST_H_
#define ATOLL_WORKER_APP_SERVE_COMPLETION_REQUEST_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/token_width.h"
#include "worker/data/tokenizer.h"

namespace atl {

/// The body of POST /v1/completions, as OpenAI's API has it.
struct CompletionRequest {
  std::string model;
  std::vector<std::vector<TokenId>> prompts;  // none is empty
  uint32_t max_tokens = 16;
  double temperature = 1;
  double top_p = 1;
  std::optional<uint64_t> seed;
  std::vector<std::string> stop;
  bool echo = false;
  std::optional<uint32_t> logprobs;  // most likely tokens to name in each place
};

/// What the model allows.
struct CompletionBounds {
  uint32_t context = 0;                  // tokens that it sees at once
  uint32_t vocabulary = 0;               // tokens
  const Tokenizer* tokenizer = nullptr;  // null: prompts come as token numbers
  std::optional<TokenId> begin = {};     // stands for an empty prompt
};

inline constexpr size_t kMostPrompts = 128;
inline constexpr size_t kMostTokensOfRequest = 65536;  // of all prompts and their continuations
inline constexpr uint32_t kMostLogprobs = 20;
inline constexpr size_t kMostStops = 16;

/// InvalidArgument says what is wrong with which field, which FieldOf() names: wrong types, bounds, fields
/// that this server does not know, and features that it does not have.
absl::StatusOr<CompletionRequest> ParseCompletionRequest(std::string_view body,
                                                         const CompletionBounds& bounds);

/// The field that an error of ParseCompletionRequest is about; empty: none.
std::string FieldOf(const absl::Status& status);

}  // namespace atl

#endif  // ATOLL_WORKER_APP_SERVE_COMPLETION_REQUEST_H_
