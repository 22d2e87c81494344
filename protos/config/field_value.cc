#include "protos/config/field_value.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/did_you_mean.h"
#include "protos/config/problem.h"
#include "protos/config/schema.h"

namespace atl {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

std::string WrongType(const FieldDescriptor* field, const std::string& text) {
  return absl::StrCat(Quoted(text), " has the wrong type; allowed: ", AllowedText(field));
}

std::string OutOfRange(const FieldDescriptor* field, const std::string& text) {
  double value = 0;
  const bool too_small = absl::SimpleAtod(text, &value) && value > 0 && RuleOf(field).exclusive_min() &&
                         value < std::numeric_limits<float>::min();
  return absl::StrCat(text,
                      too_small ? " is too small for a float32; allowed: " : " is out of range; allowed: ",
                      AllowedText(field));
}

bool IsWholeNumber(const std::string& text) {
  const size_t sign = !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
  return text.size() > sign && text.size() <= 40 &&
         std::all_of(text.begin() + static_cast<int64_t>(sign), text.end(),
                     [](char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); });
}

std::string SetWhole(const FieldDescriptor* field, const std::string& text, Message* message) {
  if (!IsWholeNumber(text)) return WrongType(field, text);
  const bool narrow = field->cpp_type() == FieldDescriptor::CPPTYPE_UINT32;
  uint64_t value = 0;
  const bool fits =
      absl::SimpleAtoi(text, &value) && (!narrow || value <= std::numeric_limits<uint32_t>::max());
  if (!fits || !InRange(field, static_cast<double>(value))) return OutOfRange(field, text);
  if (narrow) {
    message->GetReflection()->SetUInt32(message, field, static_cast<uint32_t>(value));
  } else {
    message->GetReflection()->SetUInt64(message, field, value);
  }
  return "";
}

std::string SetReal(const FieldDescriptor* field, const std::string& text, Message* message) {
  double value = 0;
  // SimpleAtod also reads "nan", "inf", blanks around a number, and hexadecimal digits. The first two are out
  // of every range; 0x10 would be read as 16.
  if (text.find_first_of("xX") != std::string::npos || !absl::SimpleAtod(text, &value)) {
    return WrongType(field, text);
  }
  if (!InRange(field, value)) return OutOfRange(field, text);
  message->GetReflection()->SetDouble(message, field, value);
  return "";
}

std::string SetChoice(const FieldDescriptor* field, const std::string& text, Message* message) {
  const auto* value = FindChoice(field->enum_type(), text);
  if (value == nullptr) {
    const std::string meant = DidYouMean(text, Choices(field->enum_type()));
    return absl::StrCat(Quoted(text), " is not known; ",
                        meant.empty() ? "" : absl::StrCat("did you mean '", meant, "'? "),
                        "allowed: ", AllowedText(field));
  }
  message->GetReflection()->SetEnum(message, field, value);
  return "";
}

std::string SetText(const FieldDescriptor* field, const std::string& text, Message* message) {
  if (text.empty() && RuleOf(field).required()) return "must not be empty";
  message->GetReflection()->SetString(message, field, text);
  return "";
}

std::string SetBool(const FieldDescriptor* field, const std::string& text, Message* message) {
  if (text != "true" && text != "false") return WrongType(field, text);
  message->GetReflection()->SetBool(message, field, text == "true");
  return "";
}

}  // namespace

std::string SetFromText(const FieldDescriptor* field, const std::string& text, bool quoted,
                        Message* message) {
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) return SetText(field, text, message);
  if (quoted) {
    return absl::StrCat(Quoted(text),
                        " is quoted text, which is the wrong type; allowed: ", AllowedText(field));
  }
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return SetBool(field, text, message);
    case FieldDescriptor::CPPTYPE_ENUM:
      return SetChoice(field, text, message);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return SetReal(field, text, message);
    default:
      return SetWhole(field, text, message);
  }
}

std::string ToText(const FieldDescriptor* field, const Message& message) {
  const auto* reflection = message.GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection->GetBool(message, field) ? "true" : "false";
    case FieldDescriptor::CPPTYPE_ENUM:
      return Spelling(reflection->GetEnum(message, field));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return NumberText(reflection->GetDouble(message, field));
    case FieldDescriptor::CPPTYPE_STRING:
      return absl::StrCat("\"", absl::Utf8SafeCHexEscape(reflection->GetString(message, field)), "\"");
    case FieldDescriptor::CPPTYPE_UINT32:
      return absl::StrCat(reflection->GetUInt32(message, field));
    default:
      return absl::StrCat(reflection->GetUInt64(message, field));
  }
}

std::string CheckValue(const FieldDescriptor* field, const Message& message) {
  const auto* reflection = message.GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return "";
    case FieldDescriptor::CPPTYPE_STRING:
      return RuleOf(field).required() && reflection->GetString(message, field).empty() ? "must not be empty"
                                                                                       : "";
    case FieldDescriptor::CPPTYPE_ENUM: {
      const int number = reflection->GetEnumValue(message, field);
      const bool known = number != 0 && field->enum_type()->FindValueByNumber(number) != nullptr;
      return known ? "" : absl::StrCat("value ", number, " is not known; allowed: ", AllowedText(field));
    }
    case FieldDescriptor::CPPTYPE_DOUBLE: {
      const double value = reflection->GetDouble(message, field);
      return InRange(field, value)
                 ? ""
                 : OutOfRange(field, std::isfinite(value) ? NumberText(value) : absl::StrCat(value));
    }
    default: {
      const std::string text = ToText(field, message);
      double value = 0;
      return absl::SimpleAtod(text, &value) && InRange(field, value) ? "" : OutOfRange(field, text);
    }
  }
}

std::vector<std::string> FieldNames(const google::protobuf::Descriptor* descriptor) {
  std::vector<std::string> names;
  for (int i = 0; i < descriptor->field_count(); ++i) {
    if (!IsSetByPrograms(descriptor->field(i))) names.push_back(descriptor->field(i)->name());
  }
  return names;
}

}  // namespace atl
