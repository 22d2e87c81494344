#ifndef ATOLL_PROTOS_CONFIG_FIELD_VALUE_H_
#define ATOLL_PROTOS_CONFIG_FIELD_VALUE_H_

#include <string>
#include <vector>

#include "google/protobuf/message.h"

// Reads, writes and checks one scalar field of a configuration.

namespace atl {

/// Sets the field from YAML text. Returns an empty string on success; otherwise returns the problem ("1.5 is
/// out of range; allowed: ...") and does not change the field. `quoted`: the text was in quotes, so it is not
/// a number, a boolean or a choice.
std::string SetFromText(const google::protobuf::FieldDescriptor* field, const std::string& text, bool quoted,
                        google::protobuf::Message* message);

/// The field's value in YAML; texts in double quotes.
std::string ToText(const google::protobuf::FieldDescriptor* field, const google::protobuf::Message& message);

/// The problem with the field's value; empty if the value is valid.
std::string CheckValue(const google::protobuf::FieldDescriptor* field,
                       const google::protobuf::Message& message);

/// The names of the fields that users may set (see IsSetByPrograms), in the order of the .proto file.
std::vector<std::string> FieldNames(const google::protobuf::Descriptor* descriptor);

}  // namespace atl

#endif  // ATOLL_PROTOS_CONFIG_FIELD_VALUE_H_
