#ifndef ATOLL_TOKENIZER_BYTE_LEVEL_H_
#define ATOLL_TOKENIZER_BYTE_LEVEL_H_

#include <optional>
#include <string>
#include <string_view>

namespace atl {

/// The bytes of a token that is written in GPT-2's alphabet, where each byte is a printable character;
/// nullopt: the text has another character.
std::optional<std::string> FromByteLevel(std::string_view text);

}  // namespace atl

#endif  // ATOLL_TOKENIZER_BYTE_LEVEL_H_
