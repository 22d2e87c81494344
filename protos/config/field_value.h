#ifndef ATOLL_PROTOS_CONFIG_FIELD_VALUE_H_
#define ATOLL_PROTOS_CONFIG_FIELD_VALUE_H_

#include <string>
#include <vector>

#include "google/protobuf/message.h"

// One scalar field of a configuration: from text, to text, checked.

namespace atl {

/// Sets the field from YAML text. Returns what is wrong ("1.5 is out of range; allowed: ..."), and then
/// leaves the field alone; empty when it was set. `quoted`: the text stood in quotes and is therefore no
/// number, boolean or choice.
std::string SetFromText(const google::protobuf::FieldDescriptor* field, const std::string& text, bool quoted,
                        google::protobuf::Message* message);

/// The field's value in YAML; texts in double quotes.
std::string ToText(const google::protobuf::FieldDescriptor* field, const google::protobuf::Message& message);

/// What is wrong with the value that the field has; empty when nothing is.
std::string CheckValue(const google::protobuf::FieldDescriptor* field,
                       const google::protobuf::Message& message);

/// The names of the fields that people may set (IsSetByPrograms), in the order of the .proto file.
std::vector<std::string> FieldNames(const google::protobuf::Descriptor* descriptor);

}  // namespace atl

#endif  // ATOLL_PROTOS_CONFIG_FIELD_VALUE_H_
