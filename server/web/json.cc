#include "server/web/json.h"

#include <set>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "google/protobuf/util/json_util.h"
#include "nlohmann/json.hpp"

namespace atl {
namespace {

/// protobuf takes `expectedVersion` and `expected_version` for one field.
std::string Spelling(const std::string& name) {
  return absl::AsciiStrToLower(absl::StrReplaceAll(name, {{"_", ""}}));
}

/// protobuf reads more than JSON, and takes the last of two fields of one name. A client means neither.
absl::Status CheckJson(const std::string& body) {
  std::vector<std::set<std::string>> names;  // of the objects around the place that is read
  std::string twice;
  const auto look = [&](int, nlohmann::json::parse_event_t event, const nlohmann::json& value) {
    using Event = nlohmann::json::parse_event_t;
    if (event == Event::object_start) names.emplace_back();
    if (event == Event::object_end) names.pop_back();
    if (event != Event::key) return true;
    const std::string name = value.get<std::string>();
    if (!names.back().insert(Spelling(name)).second) twice = name;
    return true;
  };
  try {
    if (nlohmann::json::parse(body, look).is_discarded())
      return absl::InvalidArgumentError("nothing is left");
  } catch (const nlohmann::json::exception& error) {
    return absl::InvalidArgumentError(error.what());
  }
  if (twice.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat("the field '%s' is given twice", twice));
}

}  // namespace

absl::StatusOr<std::string> ToJson(const google::protobuf::Message& message) {
  std::string text;
  const auto status = google::protobuf::util::MessageToJsonString(message, &text);
  if (!status.ok()) {
    return absl::InternalError(
        absl::StrFormat("%s cannot be written as JSON: %s", message.GetTypeName(), status.ToString()));
  }
  return text;
}

absl::Status FromJson(const std::string& body, google::protobuf::Message* message) {
  if (body.empty()) return absl::OkStatus();
  const auto rejected = [&](const std::string& why) {
    return absl::InvalidArgumentError(
        absl::StrFormat("the body is not JSON of %s: %s", message->GetTypeName(), why));
  };
  if (const absl::Status json = CheckJson(body); !json.ok()) return rejected(std::string(json.message()));
  const auto status = google::protobuf::util::JsonStringToMessage(body, message);
  return status.ok() ? absl::OkStatus() : rejected(status.ToString());
}

WebReply MessageReply(const google::protobuf::Message& message) {
  const auto text = ToJson(message);
  return text.ok() ? WebReply{.body = *text} : ErrorReply(text.status());
}

}  // namespace atl
