#ifndef ATOLL_STORAGE_BIG_ENDIAN_H_
#define ATOLL_STORAGE_BIG_ENDIAN_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace atl {

/// Appends the low `Bytes` bytes of `value`, highest first: byte order is number order.
template <size_t Bytes>
void AppendBigEndian(std::string& out, uint64_t value) {
  static_assert(Bytes >= 1 && Bytes <= 8);
  for (size_t i = Bytes; i-- > 0;) out.push_back(static_cast<char>(static_cast<uint8_t>(value >> (8 * i))));
}

}  // namespace atl

#endif  // ATOLL_STORAGE_BIG_ENDIAN_H_
