#ifndef ATOLL_TOKENIZER_UTF8_H_
#define ATOLL_TOKENIZER_UTF8_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace atl {

/// A code point at the front of a text, and its bytes. An invalid sequence is one of its bytes, as U+FFFD.
struct CodePoint {
  uint32_t value;
  uint32_t bytes;
  bool valid;
};

/// The first code point of [at, end), which is not empty.
inline CodePoint DecodeUtf8(const char* at, const char* end) {
  constexpr CodePoint kInvalid{0xfffd, 1, false};
  const auto byte = [&](int i) { return static_cast<uint8_t>(at[i]); };
  const auto follows = [&](int i) { return (byte(i) & 0xc0) == 0x80; };
  const uint32_t first = byte(0);
  if (first < 0x80) return {first, 1, true};
  const auto left = end - at;
  if (first < 0xc2) return kInvalid;  // a continuation, or a longer form than needed
  if (first < 0xe0) {
    if (left < 2 || !follows(1)) return kInvalid;
    return {(first & 0x1f) << 6 | (byte(1) & 0x3fu), 2, true};
  }
  if (first < 0xf0) {
    if (left < 3 || !follows(1) || !follows(2)) return kInvalid;
    const uint32_t value = (first & 0x0f) << 12 | (byte(1) & 0x3fu) << 6 | (byte(2) & 0x3fu);
    if (value < 0x800 || (value >= 0xd800 && value < 0xe000)) return kInvalid;
    return {value, 3, true};
  }
  if (first > 0xf4 || left < 4 || !follows(1) || !follows(2) || !follows(3)) return kInvalid;
  const uint32_t value =
      (first & 0x07) << 18 | (byte(1) & 0x3fu) << 12 | (byte(2) & 0x3fu) << 6 | (byte(3) & 0x3fu);
  if (value < 0x10000 || value > 0x10ffff) return kInvalid;
  return {value, 4, true};
}

void AppendUtf8(uint32_t code_point, std::string& text);

bool IsUtf8(std::string_view text);

/// Appends `text` with U+FFFD for each maximal part of an invalid sequence, as Python's
/// decode(errors="replace") and browsers do.
void AppendReplaced(std::string_view text, std::string& out);

}  // namespace atl

#endif  // ATOLL_TOKENIZER_UTF8_H_
