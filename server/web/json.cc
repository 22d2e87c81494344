#include "server/web/json.h"

#include "absl/strings/str_format.h"
#include "google/protobuf/util/json_util.h"

namespace atoll {

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
  const auto status = google::protobuf::util::JsonStringToMessage(body, message);
  if (status.ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("the body is not JSON of %s: %s", message->GetTypeName(), status.ToString()));
}

}  // namespace atoll
