#include "protos/config/defaults.h"

#include "protos/config/field_value.h"
#include "protos/config/schema.h"

namespace atoll {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

bool IsSection(const FieldDescriptor* field) { return field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE; }

}  // namespace

void FillWithDefaults(Message* message) {
  const auto* descriptor = message->GetDescriptor();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const FieldDescriptor* field = descriptor->field(i);
    const v1::FieldRule& rule = RuleOf(field);
    if (IsSection(field)) {
      const bool choice = field->real_containing_oneof() != nullptr;
      if (!choice) FillWithDefaults(message->GetReflection()->MutableMessage(message, field));
    } else if (rule.has_default_value()) {
      // A default that its own rule refuses is caught by the tests of the schema.
      SetFromText(field, rule.default_value(), /*quoted=*/false, message);
    }
  }
}

void FillAbsent(Message* message) {
  const auto* descriptor = message->GetDescriptor();
  const auto* reflection = message->GetReflection();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const FieldDescriptor* field = descriptor->field(i);
    const v1::FieldRule& rule = RuleOf(field);
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
      const bool unspecified = reflection->GetEnumValue(*message, field) == 0;
      if (unspecified && rule.has_default_value())
        SetFromText(field, rule.default_value(), /*quoted=*/false, message);
    }
    if (!IsSection(field)) continue;
    if (reflection->HasField(*message, field)) {
      FillAbsent(reflection->MutableMessage(message, field));
    } else if (field->real_containing_oneof() == nullptr && !rule.required()) {
      FillWithDefaults(reflection->MutableMessage(message, field));
    }
  }
}

}  // namespace atoll
