#include "tokenizer/pattern.h"

#include <algorithm>
#include <iterator>

namespace atl {
namespace {

struct Name {
  std::string_view name;
  Pattern pattern;
};
constexpr Name kNames[] = {{"gpt2", Pattern::kGpt2},   {"cl100k", Pattern::kCl100kTiktoken},
                           {"o200k", Pattern::kO200k}, {"llama3", Pattern::kCl100k},
                           {"qwen2", Pattern::kQwen2}, {"smollm", Pattern::kSmolLm}};

struct Expression {
  std::string_view text;
  Pattern pattern;
};
constexpr Expression kExpressions[] = {
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", Pattern::kGpt2},
    {R"('(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s)", Pattern::kGpt2},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     Pattern::kCl100k},
    {R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s)",
     Pattern::kCl100kTiktoken},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     Pattern::kQwen2},
    {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
     R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
     R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     Pattern::kO200k},
};

}  // namespace

std::string_view PatternName(Pattern pattern) {
  if (pattern == Pattern::kCl100k) return "cl100k";  // else it would be "llama3"
  return std::ranges::find(kNames, pattern, &Name::pattern)->name;
}

std::optional<Pattern> PatternOfName(std::string_view name) {
  const auto* found = std::ranges::find(kNames, name, &Name::name);
  if (found == std::end(kNames)) return std::nullopt;
  return found->pattern;
}

std::optional<Pattern> PatternOfExpression(std::string_view expression) {
  const auto* found = std::ranges::find(kExpressions, expression, &Expression::text);
  if (found == std::end(kExpressions)) return std::nullopt;
  return found->pattern;
}

}  // namespace atl
