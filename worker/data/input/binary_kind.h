#ifndef ATOLL_WORKER_DATA_INPUT_BINARY_KIND_H_
#define ATOLL_WORKER_DATA_INPUT_BINARY_KIND_H_

#include <string_view>

namespace atl {

/// A kind of file that is no text although it may hold some.
struct BinaryKind {
  std::string_view what;    // "a zip archive"
  std::string_view remedy;  // "unpack it, and name the files in it"
};

/// The kind of a file (after decompression) by its first bytes; null: none of those that are known.
const BinaryKind* FindBinaryKind(std::string_view first_bytes);

}  // namespace atl

#endif  // ATOLL_WORKER_DATA_INPUT_BINARY_KIND_H_
