#ifndef ATOLL_SERVER_WEB_JSON_H_
#define ATOLL_SERVER_WEB_JSON_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/http/exchange.h"
#include "google/protobuf/message.h"

// protobuf's JSON: lowerCamelCase names, 64-bit integers as strings, enums by name, fields at their default
// absent. Web clients get the same messages as on the admin port.

namespace atl {

/// Internal if the message cannot be converted.
absl::StatusOr<std::string> ToJson(const google::protobuf::Message& message);

/// An empty body is an empty message. InvalidArgument for what is not JSON of this message, unknown fields
/// and fields that are there twice included.
absl::Status FromJson(const std::string& body, google::protobuf::Message* message);

/// The message as the body of a reply.
WebReply MessageReply(const google::protobuf::Message& message);

}  // namespace atl

#endif  // ATOLL_SERVER_WEB_JSON_H_
