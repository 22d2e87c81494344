#ifndef ATOLL_TOKENIZER_PATTERN_H_
#define ATOLL_TOKENIZER_PATTERN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace atl {

/// How a tokenizer divides a text into pieces before it merges. Merges never cross a piece.
enum class Pattern : uint8_t {
  kGpt2,    // contractions, letters, numbers, other; white space leaves its last character to the next piece
  kCl100k,  // one other character may lead letters; at most three digits; line ends end a piece (Llama 3 too)
  kCl100kTiktoken,  // the same, but white space at the end of a text is one piece (tiktoken's own expression)
  kQwen2,           // kCl100k, each digit alone
  kO200k,           // words end where capitals follow small letters; contractions belong to their word
  kSmolLm,          // each digit alone, then kGpt2 on what is between
};

/// "gpt2", "cl100k" (also kCl100kTiktoken), "qwen2", "o200k", "smollm".
std::string_view PatternName(Pattern pattern);
/// What PatternOfName knows, for messages.
inline constexpr char kPatternNames[] = "gpt2, cl100k, o200k, llama3, qwen2, smollm";
/// The pattern of a kind of tokenizer; nullopt: unknown. "cl100k" is tiktoken's, "llama3" the older
/// expression.
std::optional<Pattern> PatternOfName(std::string_view name);

/// The pattern of a regular expression, compared as text; nullopt: none of ours.
std::optional<Pattern> PatternOfExpression(std::string_view expression);

}  // namespace atl

#endif  // ATOLL_TOKENIZER_PATTERN_H_
