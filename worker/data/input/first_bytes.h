#ifndef ATOLL_WORKER_DATA_INPUT_FIRST_BYTES_H_
#define ATOLL_WORKER_DATA_INPUT_FIRST_BYTES_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace atl {

/// Bytes of a text that show what it is.
inline constexpr size_t kFirstBytes = size_t{1} << 20;

/// InvalidArgument naming the file if its first bytes are those of a known binary format.
absl::Status CheckIsText(const std::string& path, std::string_view first_bytes);

/// InvalidArgument naming the file if its first line is a JSON object with a string in it: it would be
/// trained on with its braces and names.
absl::Status CheckIsNotJsonLines(const std::string& path, std::string_view first_bytes);

}  // namespace atl

#endif  // ATOLL_WORKER_DATA_INPUT_FIRST_BYTES_H_
