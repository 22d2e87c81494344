#ifndef ATOLL_COMMON_LEFT_OVER_H_
#define ATOLL_COMMON_LEFT_OVER_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace atl {

/// Checks that the file of a flag may be replaced or removed: it does not exist, is empty, or begins with
/// `mark`, the mark of files that a killed earlier process left (empty: such files are always empty).
/// Otherwise InvalidArgument with flag and file, so that a mistake does not destroy a file.
absl::Status CheckLeftOver(std::string_view flag, const std::string& path, std::string_view mark);

}  // namespace atl

#endif  // ATOLL_COMMON_LEFT_OVER_H_
