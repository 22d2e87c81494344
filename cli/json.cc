#include "cli/json.h"

#include <cstdio>
#include <string>

#include "google/protobuf/util/json_util.h"

namespace atoll {
namespace {

template <typename Options>
void PrintEveryField(Options& options) {
  // protobuf renamed this option in version 26 (Debian 13 has 3.21 still, later ones do not).
  if constexpr (requires { options.always_print_primitive_fields; }) {
    options.always_print_primitive_fields = true;
  } else {
    options.always_print_fields_with_no_presence = true;
  }
}

}  // namespace

absl::Status PrintJson(const google::protobuf::Message& message, bool compact) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = !compact;
  options.preserve_proto_field_names = true;
  PrintEveryField(options);
  std::string text;
  const auto status = google::protobuf::util::MessageToJsonString(message, &text, options);
  if (!status.ok()) return absl::InternalError("cannot print as JSON: " + status.ToString());
  std::printf("%s%s", text.c_str(), compact ? "\n" : "");
  std::fflush(stdout);
  return absl::OkStatus();
}

}  // namespace atoll
