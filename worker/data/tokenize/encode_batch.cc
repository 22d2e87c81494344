#include "worker/data/tokenize/encode_batch.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace atl {

TokenBatch BatchEncoder::Encode(TextBatch batch) {
  TokenBatch out;
  out.bad_lines = std::move(batch.bad_lines);
  if (batch.format == TextFormat::kJsonLines) {
    EncodeLines(std::move(batch.text), batch.end, batch.first_line, out);
    return out;
  }
  tokenizer_.EncodePart(batch.text, batch.end, out.tokens);
  if (!batch.ends_document) return out;
  if (const std::optional<TokenId> end = tokenizer_.end_of_text()) out.tokens.push_back(*end);
  out.ends.push_back({.tokens = out.tokens.size(), .hash = batch.hash});
  return out;
}

void BatchEncoder::EncodeLines(std::string text, size_t end, uint64_t line, TokenBatch& out) {
  text.resize(end);
  text.append(kJsonPadding, '\0');
  for (size_t at = 0; at < end; ++line) {
    const size_t line_end = std::min(text.find('\n', at), end);
    const std::string_view json = std::string_view(text).substr(at, line_end - at);
    at = line_end + 1;
    if (json.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const absl::StatusOr<std::string_view> document = json_.Text(json);
    if (document.ok()) {
      AddDocument(*document, out);
    } else {
      out.bad_lines.push_back({.line = line, .why = std::string(document.status().message())});
    }
  }
}

void BatchEncoder::AddDocument(std::string_view text, TokenBatch& out) {
  if (text.empty()) return;
  const uint64_t hash = hash_documents_ ? DocumentHash(text) : 0;
  const std::optional<TokenId> end = tokenizer_.end_of_text();
  if (!end && text.back() != '\n') {
    with_line_feed_.assign(text);
    with_line_feed_ += '\n';
    text = with_line_feed_;
  }
  tokenizer_.Encode(text, tokens_);
  out.tokens.insert(out.tokens.end(), tokens_.begin(), tokens_.end());
  if (end) out.tokens.push_back(*end);
  out.ends.push_back({.tokens = out.tokens.size(), .hash = hash});
}

}  // namespace atl
