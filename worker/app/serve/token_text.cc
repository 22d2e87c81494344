#include "worker/app/serve/token_text.h"

#include <algorithm>
#include <span>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tokenizer/utf8.h"

namespace atl {

size_t CharactersBegun(std::string_view bytes) {
  return static_cast<size_t>(std::ranges::count_if(
      bytes, [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }));
}

std::string TokenText(const Tokenizer* tokenizer, TokenId token) {
  if (tokenizer == nullptr) return absl::StrCat("token_id:", token);
  std::string text = tokenizer->Decode(std::span(&token, 1));
  if (IsUtf8(text)) return text;
  std::string bytes = "bytes:";
  for (const char byte : text)
    absl::StrAppend(&bytes, absl::StrFormat("\\x%02x", static_cast<unsigned char>(byte)));
  return bytes;
}

}  // namespace atl
