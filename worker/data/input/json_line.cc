#include "worker/data/input/json_line.h"

#include <simdjson.h>

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

namespace atl {
namespace {

using simdjson::dom::element_type;

static_assert(kJsonPadding >= simdjson::SIMDJSON_PADDING);

std::string_view NameOf(element_type type) {
  switch (type) {
    case element_type::ARRAY:
      return "an array";
    case element_type::OBJECT:
      return "an object";
    case element_type::STRING:
      return "a string";
    case element_type::BOOL:
      return "a boolean";
    case element_type::NULL_VALUE:
      return "null";
    default:
      return "a number";
  }
}

}  // namespace

struct JsonLineReader::Parser {
  simdjson::dom::parser parser;
};

JsonLineReader::JsonLineReader(std::string field)
    : field_(std::move(field)), parser_(std::make_unique<Parser>()) {}
JsonLineReader::~JsonLineReader() = default;

absl::StatusOr<std::string_view> JsonLineReader::Text(std::string_view line) {
  const auto bad = [](const auto&... why) { return absl::InvalidArgumentError(absl::StrCat(why...)); };
  simdjson::dom::element parsed;
  const auto problem = parser_->parser.parse(line.data(), line.size(), false).get(parsed);
  if (problem == simdjson::UTF8_ERROR) return bad("invalid UTF-8");
  if (problem != simdjson::SUCCESS) return bad("not JSON: ", simdjson::error_message(problem));
  simdjson::dom::object object;
  if (parsed.get(object) != simdjson::SUCCESS) {
    return bad("not a JSON object but ", std::string(NameOf(parsed.type())));
  }
  std::optional<simdjson::dom::element> found;
  for (const auto& [key, value] : object) {
    if (key == field_) found = value;
  }
  if (!found) return bad("no field '", field_, "'");
  std::string_view text;
  if (found->get(text) != simdjson::SUCCESS) {
    return bad("the field '", field_, "' is ", std::string(NameOf(found->type())), ", not a string");
  }
  return text;
}

std::vector<std::string> JsonLineReader::StringFields(const std::string& line) {
  std::vector<std::string> names;
  simdjson::dom::parser parser;
  simdjson::dom::object object;
  if (parser.parse(line).get(object) != simdjson::SUCCESS) return names;
  for (const auto& [key, value] : object) {
    if (value.is_string()) names.emplace_back(key);
  }
  return names;
}

bool IsValidUtf8(std::string_view text) { return simdjson::validate_utf8(text.data(), text.size()); }

}  // namespace atl
