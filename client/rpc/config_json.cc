#include "client/rpc/config_json.h"

#include "atoll/v1/run.pb.h"
#include "google/protobuf/util/json_util.h"

namespace atl {
namespace {

template <typename Options>
void PrintEveryField(Options& options) {
  // protobuf renamed this option in version 26. Debian 13 still has 3.21.
  if constexpr (requires { options.always_print_primitive_fields; }) {
    options.always_print_primitive_fields = true;
  } else {
    options.always_print_fields_with_no_presence = true;
  }
}

}  // namespace

std::string ConfigJson(const std::string& config_bytes) {
  v1::RunConfig config;
  if (!config.ParseFromString(config_bytes)) return "{}";
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  PrintEveryField(options);
  std::string json;
  return google::protobuf::util::MessageToJsonString(config, &json, options).ok() ? json : "{}";
}

}  // namespace atl
