#ifndef ATOLL_PROTOS_CONFIG_SCHEMA_H_
#define ATOLL_PROTOS_CONFIG_SCHEMA_H_

#include <string>
#include <string_view>
#include <vector>

#include "atoll/v1/rule.pb.h"
#include "google/protobuf/descriptor.h"

// Reads the rules in run.proto. Checks, defaults and help texts all come from these rules.

namespace atl {

const v1::FieldRule& RuleOf(const google::protobuf::FieldDescriptor* field);

/// Whether the field is a section, that is, has fields itself.
inline bool IsSection(const google::protobuf::FieldDescriptor* field) {
  return field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE;
}

/// Whether only programs write the field: its doc begins with "Set by".
bool IsSetByPrograms(const google::protobuf::FieldDescriptor* field);

/// YAML's spelling of an enum value: its name without the enum's prefix, in lower case (OUTER_OPTIMIZER_SGD:
/// "sgd"), or what the value's ChoiceRule says.
std::string Spelling(const google::protobuf::EnumValueDescriptor* value);

/// The value's name in the previous release; empty if the name has not changed.
const std::string& OldSpelling(const google::protobuf::EnumValueDescriptor* value);

/// The spellings of all values but the unspecified one.
std::vector<std::string> Choices(const google::protobuf::EnumDescriptor* type);

/// Finds a choice by its spelling or its old spelling; nullptr if there is none.
const google::protobuf::EnumValueDescriptor* FindChoice(const google::protobuf::EnumDescriptor* type,
                                                        std::string_view spelling);

/// "a whole number from 1 to 10000", "a number above 0, at most 100", "one of nesterov, sgd, adam", "true or
/// false".
std::string AllowedText(const google::protobuf::FieldDescriptor* field);

/// Whether a number satisfies the field's bounds. NaN never does.
bool InRange(const google::protobuf::FieldDescriptor* field, double value);

/// The shortest decimal text that reads back as the same number; whole numbers without exponent.
std::string NumberText(double value);

}  // namespace atl

#endif  // ATOLL_PROTOS_CONFIG_SCHEMA_H_
