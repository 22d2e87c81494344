#include "protos/config/defaults.h"

#include "protos/config/field_value.h"
#include "protos/config/schema.h"

namespace atl {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

bool IsNumber(const FieldDescriptor* field) {
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
    case FieldDescriptor::CPPTYPE_INT64:
    case FieldDescriptor::CPPTYPE_UINT32:
    case FieldDescriptor::CPPTYPE_UINT64:
    case FieldDescriptor::CPPTYPE_DOUBLE:
    case FieldDescriptor::CPPTYPE_FLOAT:
      return true;
    default:
      return false;
  }
}

/// The field has a value that nobody can set, so it was not set.
bool IsAbsent(const Message& message, const FieldDescriptor* field) {
  if (field->is_repeated()) return false;
  const auto* reflection = message.GetReflection();
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_ENUM)
    return reflection->GetEnumValue(message, field) == 0;
  return IsNumber(field) && !reflection->HasField(message, field) && !InRange(field, 0);
}

enum class Writer { kThisRelease, kOlderRelease };

/// The value that the message's writer assumed for a field that it did not set.
const std::string& Unset(const v1::FieldRule& rule, Writer writer) {
  const bool older = writer == Writer::kOlderRelease && rule.has_absent_value();
  return older ? rule.absent_value() : rule.default_value();
}

void FillAll(Message* message, Writer writer) {
  const auto* descriptor = message->GetDescriptor();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const FieldDescriptor* field = descriptor->field(i);
    const v1::FieldRule& rule = RuleOf(field);
    if (IsSection(field)) {
      const bool choice = field->real_containing_oneof() != nullptr;
      if (!choice) FillAll(message->GetReflection()->MutableMessage(message, field), writer);
    } else if (rule.has_default_value()) {
      // Tests of the schema check that every default satisfies its own rule.
      SetFromText(field, Unset(rule, writer), /*quoted=*/false, message);
    }
  }
}

}  // namespace

void FillWithDefaults(Message* message) { FillAll(message, Writer::kThisRelease); }

void FillAbsent(Message* message) {
  const auto* descriptor = message->GetDescriptor();
  const auto* reflection = message->GetReflection();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const FieldDescriptor* field = descriptor->field(i);
    const v1::FieldRule& rule = RuleOf(field);
    if (!IsSection(field)) {
      if (rule.has_default_value() && IsAbsent(*message, field)) {
        SetFromText(field, Unset(rule, Writer::kOlderRelease), /*quoted=*/false, message);
      }
      continue;
    }
    if (reflection->HasField(*message, field)) {
      FillAbsent(reflection->MutableMessage(message, field));
    } else if (field->real_containing_oneof() == nullptr && !rule.required()) {
      FillAll(reflection->MutableMessage(message, field), Writer::kOlderRelease);
    }
  }
}

}  // namespace atl
