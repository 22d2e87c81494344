#include "cli/json_field.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"

namespace atl {
namespace {

using Json = nlohmann::ordered_json;

std::string Text(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

const Json* Element(const Json& array, const std::string& step) {
  int64_t position = 0;
  if (absl::SimpleAtoi(step, &position)) {
    const auto size = static_cast<int64_t>(array.size());
    if (position < 0) position += size;
    return position >= 0 && position < size ? &array[static_cast<size_t>(position)] : nullptr;
  }
  const std::pair<std::string, std::string> wanted = absl::StrSplit(step, absl::MaxSplits('=', 1));
  for (const Json& element : array) {
    const auto field = element.is_object() ? element.find(wanted.first) : element.end();
    if (field != element.end() && Text(*field) == wanted.second) return &element;
  }
  return nullptr;
}

const Json* Child(const Json& value, const std::string& step) {
  if (value.is_array()) return Element(value, step);
  if (!value.is_object()) return nullptr;
  const auto field = value.find(step);
  return field == value.end() ? nullptr : &*field;
}

std::string Choices(const Json& value) {
  if (value.is_array()) return absl::StrCat("an array of ", value.size(), " elements");
  if (!value.is_object()) return "a single value";
  if (value.empty()) return "an empty object";
  std::vector<std::string> names;
  for (const auto& [name, unused] : value.items()) names.push_back(name);
  return absl::StrCat("an object with the fields ", absl::StrJoin(names, ", "));
}

}  // namespace

absl::StatusOr<std::string> JsonField(const std::string& json, const std::string& path) {
  const Json root = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (root.is_discarded()) return absl::InvalidArgumentError("standard input is not JSON");
  const Json* value = &root;
  for (const std::string& step : std::vector<std::string>(absl::StrSplit(path, '.'))) {
    const Json* child = Child(*value, step);
    if (child == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("no '", step, "' on the path '", path, "'; here is ", Choices(*value)));
    }
    value = child;
  }
  return Text(*value);
}

}  // namespace atl
