#ifndef ATOLL_CORE_BOUNDED_JSON_H_
#define ATOLL_CORE_BOUNDED_JSON_H_

#include <cstddef>
#include <string_view>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

// JSON of files that others wrote. For source files only: no header of core/ shows JSON.

namespace atl {

/// Bounds on what a text may make its reader hold.
struct JsonBounds {
  size_t depth = 4;        // objects and arrays inside each other
  size_t values = 100000;  // objects, arrays, names of members and plain values
};

/// InvalidArgument, with a text that continues "FILE ...": it is not JSON, is nested too deeply, holds too
/// many values, or names a member of an object twice. (Readers disagree about which of two members counts.)
/// Reads the text twice: a value is kept only after all of it is within the bounds.
absl::StatusOr<nlohmann::json> ParseBoundedJson(std::string_view text, const JsonBounds& bounds);

/// The member at a path with dots, "rope_scaling.factor"; null: there is none.
const nlohmann::json* JsonAt(const nlohmann::json& json, std::string_view path);

}  // namespace atl

#endif  // ATOLL_CORE_BOUNDED_JSON_H_
