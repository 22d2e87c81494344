#ifndef ATOLL_COMMON_JSON_INTEGER_H_
#define ATOLL_COMMON_JSON_INTEGER_H_

#include <concepts>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>

namespace atl {

/// A JSON number as T. nlohmann's get() converts every number, and the result is undefined if the number is
/// beyond T's range, such as 1e98. Throws std::range_error, which names the value, if it is no integer of T.
template <std::integral T, typename Json>
T JsonInteger(const Json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.template get<uint64_t>();
    if (std::in_range<T>(number)) return static_cast<T>(number);
  } else if (value.is_number_integer()) {
    const auto number = value.template get<int64_t>();
    if (std::in_range<T>(number)) return static_cast<T>(number);
  }
  constexpr size_t kShown = 40;
  throw std::range_error(value.dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, kShown) +
                         " is not an integer of the range that is expected here");
}

/// The same of a member of `object`, or `absent` if there is none with that name.
template <std::integral T, typename Json>
T JsonInteger(const Json& object, const char* name, T absent) {
  const auto found = object.find(name);
  return found == object.end() ? absent : JsonInteger<T>(*found);
}

}  // namespace atl

#endif  // ATOLL_COMMON_JSON_INTEGER_H_
