#include "common/printable.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace atl {
namespace {

struct Range {
  uint32_t first;
  uint32_t last;
};
constexpr std::array<Range, 9> kHidden = {{{0x00, 0x1f},
                                           {0x7f, 0x9f},
                                           {0x61c, 0x61c},
                                           {0x200b, 0x200f},
                                           {0x2028, 0x202e},
                                           {0x2060, 0x206f},
                                           {0xfeff, 0xfeff},
                                           {0xfff9, 0xfffb},
                                           {0xe0000, 0xe007f}}};

/// A character of UTF-8, or one byte that begins none.
struct Character {
  uint32_t code = 0;
  size_t bytes = 1;
  bool valid = false;
};

Character First(std::string_view text) {
  const auto lead = static_cast<uint8_t>(text.front());
  if (lead < 0x80) return {.code = lead, .bytes = 1, .valid = true};
  const size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc0 || lead >= 0xf8 || text.size() < bytes) return {};
  uint32_t code = lead & (0xffU >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) {
    const auto next = static_cast<uint8_t>(text[i]);
    if ((next & 0xc0U) != 0x80) return {};
    code = code << 6U | (next & 0x3fU);
  }
  return {.code = code, .bytes = bytes, .valid = true};
}

bool IsHidden(uint32_t code) {
  return std::ranges::any_of(
      kHidden, [code](const Range& range) { return code >= range.first && code <= range.last; });
}

}  // namespace

std::string Printable(std::string_view text) {
  std::string clean;
  while (!text.empty()) {
    const Character character = First(text);
    if (!character.valid || !IsHidden(character.code)) clean += text.substr(0, character.bytes);
    text.remove_prefix(character.bytes);
  }
  return clean;
}

}  // namespace atl
