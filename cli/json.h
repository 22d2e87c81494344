#ifndef ATOLL_CLI_JSON_H_
#define ATOLL_CLI_JSON_H_

#include "absl/status/status.h"
#include "google/protobuf/message.h"
#include "nlohmann/json_fwd.hpp"

namespace atl {

/// Prints the message on standard output as JSON with the .proto's field names; on one line when `compact`.
/// Absent numbers are printed as 0, except numbers for which 0 means unknown (a loss, a time left): they are
/// omitted.
absl::Status PrintJson(const google::protobuf::Message& message, bool compact = false);

/// Prints it on one line; invalid UTF-8 is replaced.
void PrintJson(const nlohmann::ordered_json& json);

}  // namespace atl

#endif  // ATOLL_CLI_JSON_H_
