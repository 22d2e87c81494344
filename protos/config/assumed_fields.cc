#include "protos/config/assumed_fields.h"

#include "absl/strings/str_split.h"
#include "protos/config/field_value.h"
#include "protos/config/schema.h"

namespace atl {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

bool HadAnotherDefault(const v1::FieldRule& rule) {
  return rule.has_absent_value() && rule.absent_value() != rule.default_value();
}

void Collect(const Descriptor* descriptor, const std::string& path, const std::map<std::string, int>& given,
             std::vector<std::string>* found) {
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const FieldDescriptor* field = descriptor->field(i);
    const std::string child = path + field->name();
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      Collect(field->message_type(), child + ".", given, found);
    } else if (HadAnotherDefault(RuleOf(field)) && !given.contains(child)) {
      found->push_back(child);
    }
  }
}

}  // namespace

std::vector<std::string> AssumedFields(const std::map<std::string, int>& given) {
  std::vector<std::string> found;
  Collect(v1::RunConfig::descriptor(), "", given, &found);
  return found;
}

void KeepRecorded(const std::vector<std::string>& paths, const v1::RunConfig& recorded,
                  v1::RunConfig* config) {
  for (const std::string& path : paths) {
    const Message* from = &recorded;
    Message* to = config;
    const std::vector<std::string> steps = absl::StrSplit(path, '.');
    for (size_t i = 0; i + 1 < steps.size(); ++i) {
      const FieldDescriptor* section = to->GetDescriptor()->FindFieldByName(steps[i]);
      from = &from->GetReflection()->GetMessage(*from, section);
      to = to->GetReflection()->MutableMessage(to, section);
    }
    const FieldDescriptor* field = to->GetDescriptor()->FindFieldByName(steps.back());
    SetFromText(field, ToText(field, *from), /*quoted=*/false, to);
  }
}

}  // namespace atl
