#include "worker/data/tokenizer.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace atl {

void ByteTokenizer::Encode(std::string_view text, std::vector<TokenId>& tokens) const {
  tokens.resize(text.size());
  for (size_t i = 0; i < text.size(); ++i) tokens[i] = static_cast<unsigned char>(text[i]);
}

size_t ByteTokenizer::LastCut(std::string_view text) const {
  // Behind a cut there is text.
  if (text.empty()) return 0;
  const size_t line_end = text.substr(0, text.size() - 1).rfind('\n');
  return line_end == std::string_view::npos ? 0 : line_end + 1;
}

std::string ByteTokenizer::Decode(std::span<const TokenId> tokens) const {
  std::string text;
  text.reserve(tokens.size());
  for (const TokenId token : tokens) {
    if (token < kByteVocabulary) {
      text.push_back(static_cast<char>(token));
    } else {
      text += "\xEF\xBF\xBD";
    }
  }
  return text;
}

absl::StatusOr<std::unique_ptr<Tokenizer>> MakeTokenizer(std::string_view name) {
  if (name == "bytes") return std::make_unique<ByteTokenizer>();
  return absl::InvalidArgumentError(absl::StrCat("Atoll has only '", absl::StrJoin(kTokenizerNames, "', '"),
                                                 "', no tokenizer '", std::string(name), "'"));
}

}  // namespace atl
