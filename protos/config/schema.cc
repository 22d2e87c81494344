#include "protos/config/schema.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace atl {
namespace {

using google::protobuf::EnumDescriptor;
using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;

// "MergeWeights" -> "MERGE_WEIGHTS_": how protobuf's style guide prefixes the values.
std::string Prefix(const EnumDescriptor* type) {
  std::string prefix;
  for (const char c : type->name()) {
    if (absl::ascii_isupper(static_cast<unsigned char>(c)) && !prefix.empty()) prefix.push_back('_');
    prefix.push_back(absl::ascii_toupper(static_cast<unsigned char>(c)));
  }
  return prefix + "_";
}

std::string WholeNumberText(const FieldDescriptor* field) {
  const v1::FieldRule& rule = RuleOf(field);
  const uint64_t type_max = field->cpp_type() == FieldDescriptor::CPPTYPE_UINT32
                                ? std::numeric_limits<uint32_t>::max()
                                : std::numeric_limits<uint64_t>::max();
  const uint64_t low = rule.has_min() ? static_cast<uint64_t>(rule.min()) : 0;
  const uint64_t high = rule.has_max() ? static_cast<uint64_t>(rule.max()) : type_max;
  return absl::StrCat("a whole number from ", low, " to ", high);
}

std::string RealNumberText(const v1::FieldRule& rule) {
  if (rule.exclusive_min()) {
    return absl::StrCat("a number above ", NumberText(rule.min()),
                        rule.has_max() ? absl::StrCat(", at most ", NumberText(rule.max())) : "");
  }
  if (rule.has_min() && rule.has_max()) {
    return absl::StrCat("a number from ", NumberText(rule.min()), " to ", NumberText(rule.max()));
  }
  if (rule.has_min()) return absl::StrCat("a number from ", NumberText(rule.min()), " up");
  if (rule.has_max()) return absl::StrCat("a number up to ", NumberText(rule.max()));
  return "a number";
}

}  // namespace

const v1::FieldRule& RuleOf(const FieldDescriptor* field) { return field->options().GetExtension(v1::rule); }

bool IsSetByPrograms(const FieldDescriptor* field) {
  return absl::StartsWith(RuleOf(field).doc(), "Set by ");
}

std::string Spelling(const EnumValueDescriptor* value) {
  const std::string& spelling = value->options().GetExtension(v1::choice).spelling();
  if (!spelling.empty()) return spelling;
  const std::string prefix = Prefix(value->type());
  const std::string& name = value->name();
  return absl::AsciiStrToLower(name.rfind(prefix, 0) == 0 ? name.substr(prefix.size()) : name);
}

const std::string& OldSpelling(const EnumValueDescriptor* value) {
  return value->options().GetExtension(v1::choice).old_spelling();
}

std::vector<std::string> Choices(const EnumDescriptor* type) {
  std::vector<std::string> choices;
  for (int i = 0; i < type->value_count(); ++i) {
    if (type->value(i)->number() != 0) choices.push_back(Spelling(type->value(i)));
  }
  return choices;
}

const EnumValueDescriptor* FindChoice(const EnumDescriptor* type, std::string_view spelling) {
  for (int i = 0; i < type->value_count(); ++i) {
    const EnumValueDescriptor* const value = type->value(i);
    const bool named = Spelling(value) == spelling || (!spelling.empty() && OldSpelling(value) == spelling);
    if (value->number() != 0 && named) return value;
  }
  return nullptr;
}

std::string AllowedText(const FieldDescriptor* field) {
  const v1::FieldRule& rule = RuleOf(field);
  const std::string unit = rule.unit().empty() ? "" : absl::StrCat(" ", rule.unit());
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return "true or false";
    case FieldDescriptor::CPPTYPE_ENUM:
      return absl::StrCat("one of ", absl::StrJoin(Choices(field->enum_type()), ", "));
    case FieldDescriptor::CPPTYPE_STRING:
      return "text";
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return "a section of fields";
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return RealNumberText(rule) + unit;
    default:
      return WholeNumberText(field) + unit;
  }
}

bool InRange(const FieldDescriptor* field, double value) {
  const v1::FieldRule& rule = RuleOf(field);
  if (!std::isfinite(value)) return false;
  if (rule.has_max() && value > rule.max()) return false;
  if (!rule.has_min()) return true;
  if (!rule.exclusive_min()) return value >= rule.min();
  // As a float32, a smaller number is denormal or 0.
  return value > rule.min() && (rule.min() != 0 || value >= std::numeric_limits<float>::min());
}

std::string NumberText(double value) {
  if (value == std::floor(value) && std::fabs(value) < 1e15) return absl::StrFormat("%.0f", value);
  char buffer[32];
  const auto result = std::to_chars(buffer, buffer + sizeof(buffer), value);
  return std::string(buffer, result.ptr);
}

}  // namespace atl
