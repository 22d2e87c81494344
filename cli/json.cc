#include "cli/json.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/util/json_util.h"
#include "nlohmann/json.hpp"

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

using Json = nlohmann::ordered_json;

/// Numbers for which 0 means unknown, as stated in the .proto files.
constexpr std::array<std::string_view, 9> kUnknownAtZero = {"atoll.v1.Progress.loss",
                                                            "atoll.v1.Progress.gradient_norm",
                                                            "atoll.v1.RoundSummary.train_loss",
                                                            "atoll.v1.RoundContribution.loss",
                                                            "atoll.v1.GetMetricsReply.train_loss",
                                                            "atoll.v1.GetMetricsReply.validation_loss",
                                                            "atoll.v1.GetMetricsReply.best_validation_loss",
                                                            "atoll.v1.GetMetricsReply.compute_utilisation",
                                                            "atoll.v1.GetStatusReply.compute_utilisation"};

bool IsUnknown(const google::protobuf::FieldDescriptor& field, const Json& value) {
  return value.is_number() && value == 0 &&
         std::ranges::find(kUnknownAtZero, std::string_view(field.full_name())) != kUnknownAtZero.end();
}

/// Protobuf writes an epoch in decimal. All texts, logs and files have it in hexadecimal.
bool IsEpoch(const google::protobuf::FieldDescriptor& field) {
  return field.type() == google::protobuf::FieldDescriptor::TYPE_FIXED64 && field.name() == "epoch";
}

Json EpochText(const Json& value) {
  uint64_t epoch = 0;
  if (!value.is_string() || !absl::SimpleAtoi(value.get<std::string>(), &epoch)) return value;
  return absl::StrFormat("%016x", epoch);
}

/// Leaves out unknown numbers, and writes epochs in hexadecimal.
void AdaptFields(const google::protobuf::Descriptor& type, Json& object) {
  for (int i = 0; i < type.field_count(); ++i) {
    const google::protobuf::FieldDescriptor& field = *type.field(i);
    const auto it = object.find(std::string(field.name()));
    if (it == object.end()) continue;
    if (IsUnknown(field, *it)) {
      object.erase(it);
    } else if (IsEpoch(field)) {
      *it = EpochText(*it);
    } else if (field.message_type() != nullptr && it->is_object() && !field.is_map()) {
      AdaptFields(*field.message_type(), *it);
    } else if (field.message_type() != nullptr && it->is_array()) {
      for (Json& one : *it) AdaptFields(*field.message_type(), one);
    }
  }
}

}  // namespace

absl::Status PrintJson(const google::protobuf::Message& message, bool compact) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  PrintEveryField(options);
  std::string text;
  const auto status = google::protobuf::util::MessageToJsonString(message, &text, options);
  if (!status.ok()) return absl::InternalError("cannot print as JSON: " + status.ToString());
  Json json = Json::parse(text);
  if (json.is_object()) AdaptFields(*message.GetDescriptor(), json);
  text = json.dump(compact ? -1 : 1);
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);
  return absl::OkStatus();
}

void PrintJson(const Json& json) {
  std::printf("%s\n", json.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
}

}  // namespace atl
