#include "protos/config/check_incomplete.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "protos/config/check.h"
#include "protos/config/field_value.h"
#include "protos/config/run_config.h"
#include "protos/config/schema.h"

namespace atl {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

/// The values to try for a field, in YAML's spelling.
std::vector<std::string> ValuesOf(const FieldDescriptor* field) {
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_ENUM) return Choices(field->enum_type());
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_BOOL) return {"false", "true"};
  const v1::FieldRule& rule = RuleOf(field);
  std::vector<std::string> values;
  if (rule.has_default_value()) values.push_back(rule.default_value());
  if (rule.has_min()) values.push_back(NumberText(rule.min()));
  if (rule.has_max()) values.push_back(NumberText(rule.max()));
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) values.emplace_back("x");
  return values;
}

/// A field is open when the file gives it no valid value: it has a problem itself, or it is absent from a
/// section with a problem, where another word may stand for it.
class OpenFields {
 public:
  explicit OpenFields(const YamlReading& reading) : reading_(reading) {
    for (const ConfigProblem& problem : reading.problems) with_problem_.insert(problem.path);
  }

  bool HasProblem(const std::string& path) const { return with_problem_.contains(path); }
  bool IsOpen(const std::string& path) const { return open_.contains(path); }

  /// Gives every open field the `index`th of its values; the number of values of the field that has most.
  size_t Fill(size_t index, v1::RunConfig* config) {
    most_ = 1;
    Fill("", HasProblem(""), index, config);
    return most_;
  }

 private:
  void Fill(const std::string& path, bool section_open, size_t index, Message* message) {
    for (int i = 0; i < message->GetDescriptor()->field_count(); ++i) {
      const FieldDescriptor* const field = message->GetDescriptor()->field(i);
      const std::string child = path.empty() ? field->name() : absl::StrCat(path, ".", field->name());
      const bool absent = !reading_.lines.contains(child) && !IsSetByPrograms(field);
      const bool open = HasProblem(child) || (section_open && absent);
      if (IsSection(field)) {
        const bool other_kind =
            field->real_containing_oneof() != nullptr && !message->GetReflection()->HasField(*message, field);
        if (!other_kind) Fill(child, open, index, message->GetReflection()->MutableMessage(message, field));
      } else if (open) {
        open_.insert(child);
        const std::vector<std::string> values = ValuesOf(field);
        most_ = std::max(most_, values.size());
        // A bound that is not allowed itself is passed over.
        for (size_t k = 0; k < values.size(); ++k) {
          if (SetFromText(field, values[(index + k) % values.size()], /*quoted=*/false, message).empty())
            break;
        }
      }
    }
  }

  const YamlReading& reading_;
  std::set<std::string> with_problem_;
  std::set<std::string> open_;
  size_t most_ = 1;
};

}  // namespace

std::vector<ConfigProblem> CheckIncomplete(const v1::RunConfig& config, const YamlReading& reading) {
  OpenFields open(reading);
  std::vector<ConfigProblem> kept = CheckNames(config);
  // Without its kind nothing else of a model can be checked.
  const bool model_known = !open.HasProblem("model");
  v1::RunConfig tried = config;
  const size_t count = model_known ? open.Fill(0, &tried) : 0;
  for (size_t i = 0; i < count; ++i) {
    open.Fill(i, &tried);
    if (!reading.lines.contains("round.staleness_limit")) {
      tried.mutable_round()->set_staleness_limit(DefaultStalenessLimit(tried));
    }
    if (!CheckFields(tried).empty()) break;
    const std::vector<ConfigProblem> found = CheckTogether(tried);
    if (i == 0) kept = found;
    std::erase_if(kept, [&](const ConfigProblem& problem) {
      return std::ranges::none_of(found, [&](const ConfigProblem& other) {
        return other.path == problem.path && other.text == problem.text;
      });
    });
  }
  std::erase_if(kept, [&](const ConfigProblem& problem) {
    return open.HasProblem(problem.path) || open.IsOpen(problem.path);
  });
  return kept;
}

}  // namespace atl
