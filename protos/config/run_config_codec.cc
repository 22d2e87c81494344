#include "protos/config/run_config_codec.h"

#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "atoll/v1/run.pb.h"
#include "common/did_you_mean.h"
#include "common/status.h"
#include "protos/config/check.h"
#include "protos/config/defaults.h"
#include "protos/config/field_value.h"
#include "protos/config/problem.h"
#include "protos/config/run_config.h"
#include "protos/config/schema.h"

namespace atl {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

absl::StatusOr<v1::RunConfig> Read(const std::string& bytes) {
  v1::RunConfig config;
  if (!config.ParseFromString(bytes)) {
    return absl::DataLossError("the recorded run configuration is damaged: it cannot be parsed");
  }
  // A configuration recorded by an older coordinator lacks newer fields.
  FillAbsent(&config);
  return config;
}

std::string UnknownField(const std::string& name, const Descriptor* descriptor) {
  const std::vector<std::string> names = FieldNames(descriptor);
  const std::string meant = DidYouMean(name, names);
  return absl::StrCat("unknown field ", Quoted(name), "; ",
                      meant.empty() ? "" : absl::StrCat("did you mean '", meant, "'? "),
                      "allowed: ", absl::StrJoin(names, ", "));
}

/// Applies the setting. Returns the problem; empty on success.
std::string Set(const ConfigSetting& setting, Message* message) {
  const std::vector<std::string> parts = absl::StrSplit(setting.path, '.');
  for (size_t i = 0; i < parts.size(); ++i) {
    const FieldDescriptor* field = message->GetDescriptor()->FindFieldByName(parts[i]);
    if (field == nullptr) return UnknownField(parts[i], message->GetDescriptor());
    const bool last = i + 1 == parts.size();
    if (IsSection(field)) {
      if (last) {
        return absl::StrCat("is a section; name one of its fields: ",
                            absl::StrJoin(FieldNames(field->message_type()), ", "));
      }
      if (field->real_containing_oneof() != nullptr && !message->GetReflection()->HasField(*message, field)) {
        return absl::StrCat("the run has no '", parts[i], "'");
      }
      message = message->GetReflection()->MutableMessage(message, field);
      continue;
    }
    if (!last) return absl::StrCat("'", parts[i], "' is a field, not a section");
    return SetFromText(field, setting.value, /*quoted=*/false, message);
  }
  return "is empty";
}

void Compare(const Message& before, const Message& after, const std::string& path,
             std::vector<ConfigChange>* changes) {
  const Descriptor* descriptor = before.GetDescriptor();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const FieldDescriptor* field = descriptor->field(i);
    const std::string child = path.empty() ? field->name() : absl::StrCat(path, ".", field->name());
    if (IsSection(field)) {
      Compare(before.GetReflection()->GetMessage(before, field),
              after.GetReflection()->GetMessage(after, field), child, changes);
      continue;
    }
    std::string old_text = ToText(field, before);
    std::string new_text = ToText(field, after);
    if (old_text != new_text) changes->push_back({child, std::move(old_text), std::move(new_text)});
  }
}

}  // namespace

absl::StatusOr<RunOptions> RunConfigCodec::Parse(const std::string& bytes) const {
  ATOLL_ASSIGN_OR_RETURN(const v1::RunConfig config, Read(bytes));
  return ToRunOptions(config);
}

absl::StatusOr<std::string> RunConfigCodec::Apply(const std::string& bytes,
                                                  std::span<const ConfigSetting> settings) const {
  ATOLL_ASSIGN_OR_RETURN(v1::RunConfig config, Read(bytes));
  std::vector<ConfigProblem> problems;
  std::set<std::string> seen;
  for (const ConfigSetting& setting : settings) {
    std::string complaint =
        seen.insert(setting.path).second ? Set(setting, &config) : std::string("is given twice");
    if (!complaint.empty()) problems.push_back({Quoted(setting.path), std::move(complaint), 0});
  }
  if (problems.empty()) problems = CheckFields(config);
  if (problems.empty()) problems = CheckTogether(config);
  ATOLL_RETURN_IF_ERROR(ProblemsToStatus(std::move(problems), ""));
  return config.SerializeAsString();
}

absl::StatusOr<std::vector<ConfigChange>> RunConfigCodec::Diff(const std::string& before,
                                                               const std::string& after) const {
  ATOLL_ASSIGN_OR_RETURN(const v1::RunConfig old_config, Read(before));
  ATOLL_ASSIGN_OR_RETURN(const v1::RunConfig new_config, Read(after));
  std::vector<ConfigChange> changes;
  Compare(old_config, new_config, "", &changes);
  return changes;
}

}  // namespace atl
