#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "worker/data/token_layout.h"

// datatrove (src/datatrove/pipeline/tokens/tokenizer.py), which nanotron reads too: FILE has the tokens only,
// uint16 or uint32. FILE.metadata is "TOKENIZER|BYTES OF A TOKEN", a line with the number of tokens, and a
// line for people. FILE.index is the end of each document in tokens, u64. Both are optional there.

namespace atl {
namespace {

struct Metadata {
  uint64_t token_bytes = 0, tokens = 0;
};

std::optional<Metadata> ParseMetadata(const std::string& text) {
  const size_t line_end = text.find('\n');
  if (line_end == std::string::npos) return std::nullopt;
  // A name may have a | itself, and without a name datatrove writes the size twice.
  const size_t bar = text.rfind('|', line_end);
  if (bar == std::string::npos) return std::nullopt;
  Metadata metadata;
  const size_t second_end = std::min(text.find('\n', line_end + 1), text.size());
  if (!absl::SimpleAtoi(text.substr(bar + 1, line_end - bar - 1), &metadata.token_bytes) ||
      !absl::SimpleAtoi(text.substr(line_end + 1, second_end - line_end - 1), &metadata.tokens)) {
    return std::nullopt;
  }
  return metadata;
}

}  // namespace

absl::StatusOr<TokenLayout> DatatroveLayout(const std::optional<std::string>& metadata,
                                            std::optional<uint64_t> end, uint64_t ds_bytes) {
  uint64_t tokens = end.value_or(0);
  uint64_t token_bytes = 0;
  if (metadata) {
    const std::optional<Metadata> parsed = ParseMetadata(*metadata);
    if (!parsed) {
      return absl::InvalidArgumentError(
          "its .metadata file is not 'TOKENIZER|SIZE' and the number of tokens below it; copy it again");
    }
    if (end && *end != parsed->tokens) {
      return absl::InvalidArgumentError(
          absl::StrFormat("its .metadata file says %d tokens, and its .index file %d; copy all three again",
                          parsed->tokens, *end));
    }
    tokens = parsed->tokens;
    token_bytes = parsed->token_bytes;
    if (token_bytes != 2 && token_bytes != 4) {
      return absl::InvalidArgumentError(
          absl::StrFormat("its .metadata file says %d bytes a token, and Atoll reads 2 and 4; write it again "
                          "with one of these",
                          token_bytes));
    }
  } else if (tokens > 0 && ds_bytes % tokens == 0) {
    token_bytes = ds_bytes / tokens;
  }
  if ((token_bytes != 2 && token_bytes != 4) || ds_bytes / token_bytes != tokens ||
      ds_bytes % token_bytes != 0) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%d bytes, but its .%s file says %d tokens: it is truncated or of another file; copy all "
        "of them again",
        ds_bytes, metadata ? "metadata" : "index", tokens));
  }
  return TokenLayout{.format = "datatrove",
                     .offset = 0,
                     .count = tokens,
                     .width = token_bytes == 2 ? TokenWidth::kTwoBytes : TokenWidth::kFourBytes};
}

}  // namespace atl
