#ifndef ATOLL_COMMON_LEFT_OVER_H_
#define ATOLL_COMMON_LEFT_OVER_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace atl {

/// Whether the file that a flag names may be replaced or removed: it is not there, is empty, or begins with
/// `mark`, by which an earlier life of the program is known that was killed (empty: such a file is always
/// empty). InvalidArgument, naming flag and file, for anything else: a slip must not cost a file.
absl::Status CheckLeftOver(std::string_view flag, const std::string& path, std::string_view mark);

}  // namespace atl

#endif  // ATOLL_COMMON_LEFT_OVER_H_
