#include "tokenizer/utf8.h"

#include <cstddef>
#include <cstring>

namespace atl {
namespace {

bool IsAscii(const char* at) {
  uint64_t word;
  std::memcpy(&word, at, sizeof(word));
  return (word & 0x8080808080808080u) == 0;
}

/// Bytes of the maximal part of a sequence at `at` that cannot be decoded: how far it could still have become
/// valid, at least one byte (Unicode 16.0, section 3.9, table 3-8).
size_t InvalidBytes(const char* at, const char* end) {
  const auto byte = [&](ptrdiff_t i) { return static_cast<uint8_t>(at[i]); };
  const uint8_t first = byte(0);
  const ptrdiff_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4) return 1;
  // The second byte decides whether the form is too long, a surrogate or too large.
  const uint8_t low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  const uint8_t high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  ptrdiff_t i = 1;
  while (i < length && at + i < end && byte(i) >= (i == 1 ? low : 0x80) &&
         byte(i) <= (i == 1 ? high : 0xbf)) {
    ++i;
  }
  return static_cast<size_t>(i);
}

}  // namespace

void AppendUtf8(uint32_t code_point, std::string& text) {
  const auto add = [&](uint32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (code_point < 0x80) {
    add(code_point);
  } else if (code_point < 0x800) {
    add(0xc0 | code_point >> 6);
    add(0x80 | (code_point & 0x3f));
  } else if (code_point < 0x10000) {
    add(0xe0 | code_point >> 12);
    add(0x80 | (code_point >> 6 & 0x3f));
    add(0x80 | (code_point & 0x3f));
  } else {
    add(0xf0 | code_point >> 18);
    add(0x80 | (code_point >> 12 & 0x3f));
    add(0x80 | (code_point >> 6 & 0x3f));
    add(0x80 | (code_point & 0x3f));
  }
}

bool IsUtf8(std::string_view text) {
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    if (end - at >= 8 && IsAscii(at)) {
      at += 8;
      continue;
    }
    const CodePoint point = DecodeUtf8(at, end);
    if (!point.valid) return false;
    at += point.bytes;
  }
  return true;
}

void AppendReplaced(std::string_view text, std::string& out) {
  const char* at = text.data();
  const char* const end = at + text.size();
  const char* kept = at;  // valid since here
  while (at < end) {
    const CodePoint point = DecodeUtf8(at, end);
    if (point.valid) {
      at += point.bytes;
      continue;
    }
    out.append(kept, at);
    out += "\xEF\xBF\xBD";
    at += InvalidBytes(at, end);
    kept = at;
  }
  out.append(kept, end);
}

}  // namespace atl
