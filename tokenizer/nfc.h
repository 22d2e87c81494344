#ifndef ATOLL_TOKENIZER_NFC_H_
#define ATOLL_TOKENIZER_NFC_H_

#include <string>
#include <string_view>

namespace atl {

/// Whether ToNfc could change the text. Most texts need no change; this costs little.
bool NeedsNfc(std::string_view text);

/// Appends Unicode normalization form C of the text to `out`. Invalid bytes stay as they are. Characters that
/// came after Unicode 9 stay too, as in tokenizers' NFC, so that the tokens of Qwen2 are the same. Takes time
/// O(n log n) for n marks in a row.
void ToNfc(std::string_view text, std::string& out);

}  // namespace atl

#endif  // ATOLL_TOKENIZER_NFC_H_
