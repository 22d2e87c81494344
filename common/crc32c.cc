#include "common/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>

namespace atl {

uint32_t Crc32c(std::span<const std::byte> bytes, uint32_t seed) {
  // crc32_iscsi inverts neither its seed nor its result, takes a non-const pointer that it only reads, and
  // counts in int.
  uint32_t state = ~seed;
  while (!bytes.empty()) {
    const size_t piece = std::min(bytes.size(), size_t{1} << 30);
    auto* data = const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(bytes.data()));
    state = crc32_iscsi(data, static_cast<int>(piece), state);
    bytes = bytes.subspan(piece);
  }
  return ~state;
}

uint32_t Crc32c(std::string_view bytes, uint32_t seed) {
  return Crc32c(std::as_bytes(std::span(bytes.data(), bytes.size())), seed);
}

}  // namespace atl
