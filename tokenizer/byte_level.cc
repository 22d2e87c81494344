#include "tokenizer/byte_level.h"

#include <array>
#include <cstdint>

#include "tokenizer/utf8.h"

namespace atl {
namespace {

// Printable Latin-1 characters are their own; the other bytes have U+0100 and up, in order.
constexpr uint32_t kFirstStandIn = 0x100;

constexpr bool IsItself(uint32_t byte) {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || (byte >= 0xae && byte <= 0xff);
}

constexpr auto kBytes = [] {
  std::array<int, 0x200> bytes{};
  bytes.fill(-1);
  uint32_t stand_in = kFirstStandIn;
  for (uint32_t byte = 0; byte < 256; ++byte)
    bytes[IsItself(byte) ? byte : stand_in++] = static_cast<int>(byte);
  return bytes;
}();

}  // namespace

std::optional<std::string> FromByteLevel(std::string_view text) {
  std::string bytes;
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at < end;) {
    const CodePoint point = DecodeUtf8(at, end);
    if (!point.valid || point.value >= kBytes.size() || kBytes[point.value] < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(kBytes[point.value]));
    at += point.bytes;
  }
  return bytes;
}

}  // namespace atl
