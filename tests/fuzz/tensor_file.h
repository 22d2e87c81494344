#ifndef ATOLL_TESTS_FUZZ_TENSOR_FILE_H_
#define ATOLL_TESTS_FUZZ_TENSOR_FILE_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "tests/fuzz/fuzz_input.h"

namespace atl::fuzz {

/// mode:u8, 0: the rest is the file; else data size:u16, and the rest is the JSON of a file with so many
/// bytes of data.
inline std::vector<std::byte> TakeTensorFile(FuzzInput& in) {
  const bool whole = in.Byte() == 0;
  const size_t data_bytes = whole ? 0 : in.Number(2);
  const std::span<const std::byte> rest = in.Rest();
  const uint64_t header_bytes = rest.size();
  const size_t begin = whole ? 0 : sizeof(header_bytes);
  std::vector<std::byte> file(begin + rest.size() + data_bytes);
  if (!whole) std::memcpy(file.data(), &header_bytes, sizeof(header_bytes));
  if (!rest.empty()) std::memcpy(file.data() + begin, rest.data(), rest.size());
  return file;
}

}  // namespace atl::fuzz

#endif  // ATOLL_TESTS_FUZZ_TENSOR_FILE_H_
