#ifndef ATOLL_TOKENIZER_BPE_MODEL_H_
#define ATOLL_TOKENIZER_BPE_MODEL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/token_width.h"
#include "tokenizer/pattern.h"

namespace atl {

inline constexpr size_t kMaxTokenBytes = 1024;
inline constexpr size_t kMaxAddedTokens = 16384;

struct AddedToken {
  TokenId id = 0;
  std::string content;
  /// Special tokens are never found in a text. Others are, before anything else.
  bool special = true;
  /// Found only after, and between, those without it (tokenizers' flag of this name).
  bool normalized = false;
};

struct MergeRule {
  TokenId left;
  TokenId right;
  TokenId result;
};

/// Which of two possible merges comes first. The leftmost counts among equals.
enum class MergeOrder : uint8_t {
  kByResult,  // tiktoken: the smaller id; any two tokens merge whose bytes are a token
  kByRule,    // tokenizers: the earlier rule
};

/// The contents of a tokenizer's files, checked for their form.
struct BpeModel {
  Pattern pattern = Pattern::kGpt2;
  /// Bytes of each token by id; empty: no token, or one in `added`.
  std::vector<std::string> tokens;
  MergeOrder order = MergeOrder::kByResult;
  std::vector<MergeRule> merges;  // kByRule only
  /// A piece that is a token is not merged (tiktoken, ignore_merges).
  bool whole_pieces = true;
  bool nfc = false;
  /// For bytes without a token; without it they are left out, as tokenizers does.
  std::optional<TokenId> unknown;
  std::vector<AddedToken> added;
};

}  // namespace atl

#endif  // ATOLL_TOKENIZER_BPE_MODEL_H_
