#include "worker/data/tokenizer.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace atl {

void ByteTokenizer::Encode(std::string_view text, std::vector<TokenId>& tokens) const {
  tokens.resize(text.size());
  for (size_t i = 0; i < text.size(); ++i) tokens[i] = static_cast<unsigned char>(text[i]);
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
