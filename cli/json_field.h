#ifndef ATOLL_CLI_JSON_FIELD_H_
#define ATOLL_CLI_JSON_FIELD_H_

#include <string>

#include "absl/status/statusor.h"

namespace atl {

/// The value at `path` in a JSON text: a string without its quotes, anything else as JSON. A path is names
/// and positions with dots between them: "fragments.0.version"; "-1" is the last element of an array, and
/// "name=w3" the first element whose field `name` is "w3". INVALID_ARGUMENT if the text is not JSON or has no
/// such field.
absl::StatusOr<std::string> JsonField(const std::string& json, const std::string& path);

}  // namespace atl

#endif  // ATOLL_CLI_JSON_FIELD_H_
