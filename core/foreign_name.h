#ifndef ATOLL_CORE_FOREIGN_NAME_H_
#define ATOLL_CORE_FOREIGN_NAME_H_

#include <string>
#include <string_view>
#include <vector>

namespace atl {

/// A name from a file of others, for a message: printable, and cut after 120 bytes.
std::string ForeignName(std::string_view name);

/// "; did you mean 'x'?" with the candidate nearest to `name`; empty if none is near. Looks only at
/// candidates of similar length, so that a hostile list of long names costs little.
std::string NearName(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace atl

#endif  // ATOLL_CORE_FOREIGN_NAME_H_
