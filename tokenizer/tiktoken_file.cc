#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "common/status.h"
#include "tokenizer/files.h"
#include "tokenizer/known_vocabularies.h"
#include "tokenizer/published_pattern.h"

namespace atl {
namespace {

struct Line {
  std::string bytes;
  TokenId id;
};

std::optional<Line> ParseLine(std::string_view line) {
  const size_t space = line.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  Line parsed;
  const std::string_view encoded = line.substr(0, space);
  if (!absl::Base64Unescape(std::string(encoded), &parsed.bytes) || parsed.bytes.empty()) return std::nullopt;
  if (absl::Base64Escape(parsed.bytes) != encoded) return std::nullopt;
  if (!absl::SimpleAtoi(std::string(line.substr(space + 1)), &parsed.id)) return std::nullopt;
  return parsed;
}

absl::Status AddLine(std::string_view line, size_t number, std::vector<std::string>& tokens) {
  std::optional<Line> parsed = ParseLine(line);
  if (!parsed) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "line %d is not 'BASE64 ID', so it is no .tiktoken file; download it again, or name a tokenizer.json",
        number));
  }
  if (parsed->id >= kMaxVocabulary) {
    return absl::InvalidArgumentError(
        absl::StrFormat("line %d has the id %d; ids are below %d", number, parsed->id, kMaxVocabulary));
  }
  if (parsed->id >= tokens.size()) tokens.resize(parsed->id + 1);
  if (!tokens[parsed->id].empty()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("line %d has the id %d of an earlier line", number, parsed->id));
  }
  tokens[parsed->id] = std::move(parsed->bytes);
  return absl::OkStatus();
}

/// tiktoken needs a token for each byte: a text with another byte would have no tokens.
absl::Status CheckBytes(const std::vector<std::string>& tokens) {
  std::array<bool, 256> known{};
  for (const std::string& token : tokens) {
    if (token.size() == 1) known[static_cast<uint8_t>(token[0])] = true;
  }
  const auto* const missing = std::ranges::find(known, false);
  if (missing == known.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "has no token for the byte 0x%02X, so it is incomplete; download it again", missing - known.begin()));
}

}  // namespace

absl::StatusOr<BpeModel> ParseTiktoken(std::string_view text, std::string_view pattern) {
  BpeModel model;
  size_t number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    ATOLL_RETURN_IF_ERROR(AddLine(line, number, model.tokens));
  }
  if (model.tokens.empty()) return absl::InvalidArgumentError("has no tokens; download it again");
  ATOLL_RETURN_IF_ERROR(CheckBytes(model.tokens));
  ATOLL_RETURN_IF_ERROR(SetPublishedPattern(pattern, model));
  if (const auto* known = FindKnownVocabulary(VocabularyFingerprint(model.tokens))) {
    model.added = SpecialTokensOf(*known, model.tokens.size());
  }
  return model;
}

}  // namespace atl
