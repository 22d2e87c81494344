#include "protos/config/presets.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/did_you_mean.h"
#include "core/model_presets.h"
#include "core/tokenizer_names.h"
#include "protos/config/field_value.h"
#include "protos/config/model_options.h"
#include "protos/config/schema.h"

namespace atl {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr std::string_view kExternal = "external";
constexpr std::string_view kPreset = "preset";

YamlEntry* FindEntry(YamlNode& map, std::string_view key) {
  const auto it = std::ranges::find(map.entries, key, &YamlEntry::key);
  return it == map.entries.end() ? nullptr : &*it;
}

YamlNode MakeNode(YamlNode::Kind kind, int line, std::string scalar = "") {
  YamlNode node;
  node.kind = kind;
  node.line = line;
  node.scalar = std::move(scalar);
  return node;
}

YamlEntry Setting(std::string key, std::string value, int line) {
  return {std::move(key), line, MakeNode(YamlNode::Kind::kScalar, line, std::move(value))};
}

bool PushesSparsely(YamlNode& root) {
  YamlEntry* const codec = FindEntry(root, "codec");
  YamlEntry* const push = codec == nullptr ? nullptr : FindEntry(codec->value, "push");
  return push != nullptr && push->value.scalar.starts_with("topk");
}

/// Chooses a robust merge, unless the file sets one itself.
void ChooseMerge(YamlNode& root, int line) {
  const bool sparse = PushesSparsely(root);
  if (FindEntry(root, "merge") == nullptr) {
    root.entries.push_back({"merge", line, MakeNode(YamlNode::Kind::kMap, line)});
  }
  YamlNode& merge = FindEntry(root, "merge")->value;
  if (merge.kind == YamlNode::Kind::kNull) merge.kind = YamlNode::Kind::kMap;
  const bool chosen = merge.kind != YamlNode::Kind::kMap || FindEntry(merge, "method") != nullptr ||
                      FindEntry(merge, "norm_guard") != nullptr;
  if (chosen) return;
  merge.entries.push_back(sparse ? Setting("norm_guard", "true", line)
                                 : Setting("method", "centered_clip", line));
}

/// The section's node, made if the file has none; null if the file has no section there, of which the reader
/// complains.
YamlNode* FindOrAddSection(YamlNode& parent, const std::string& section, int line) {
  if (FindEntry(parent, section) == nullptr) {
    parent.entries.push_back({section, line, MakeNode(YamlNode::Kind::kMap, line)});
  }
  YamlNode& node = FindEntry(parent, section)->value;
  if (node.kind == YamlNode::Kind::kNull) node.kind = YamlNode::Kind::kMap;
  return node.kind == YamlNode::Kind::kMap ? &node : nullptr;
}

void SetIfAbsent(YamlNode& section, YamlEntry field) {
  if (FindEntry(section, field.key) == nullptr) section.entries.push_back(std::move(field));
}

/// Gives every field that the file does not set its value in the message.
void FillFrom(const Message& message, int line, YamlNode& section) {
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = message.GetDescriptor()->field(i);
    if (!IsSection(field)) {
      SetIfAbsent(section, Setting(field->name(), ToText(field, message), line));
    } else if (message.GetReflection()->HasField(message, field)) {
      YamlNode* const child = FindOrAddSection(section, field->name(), line);
      if (child != nullptr) FillFrom(message.GetReflection()->GetMessage(message, field), line, *child);
    }
  }
}

std::vector<std::string> PresetNames() {
  std::vector<std::string> names;
  for (const ModelPreset& preset : ModelPresets()) names.emplace_back(preset.name);
  return names;
}

ConfigProblem UnknownModel(std::string_view name, const std::vector<std::string>& known, int line) {
  const std::string meant = DidYouMean(name, known);
  return {"model",
          absl::StrCat(Quoted(name), " is not a preset; ",
                       meant.empty() ? "" : absl::StrCat("did you mean '", meant, "'? "),
                       "allowed: ", absl::StrJoin(known, ", "), ", or a section"),
          line};
}

/// `model: NAME` is `model: {preset: NAME}`, or a section with its defaults: `model: external`.
std::vector<ConfigProblem> ExpandModelName(YamlEntry& model) {
  const std::string name = model.value.scalar;
  if (name != kExternal && FindModelPreset(name) == nullptr) {
    std::vector<std::string> known = PresetNames();
    known.emplace_back(kExternal);
    // Taken for this one: what else may be wrong depends on the model.
    model.value = MakeNode(YamlNode::Kind::kMap, model.line);
    FindOrAddSection(model.value, std::string(kExternal), model.line);
    return {UnknownModel(name, known, model.line)};
  }
  model.value = MakeNode(YamlNode::Kind::kMap, model.line);
  if (name == kExternal) {
    FindOrAddSection(model.value, name, model.line);
  } else {
    model.value.entries.push_back(Setting(std::string(kPreset), name, model.line));
  }
  return {};
}

std::vector<ConfigProblem> ExpandModelPreset(YamlEntry& model) {
  YamlEntry* const preset = FindEntry(model.value, kPreset);
  if (preset == nullptr) return {};
  const int line = preset->line;
  const std::string name = preset->value.scalar;
  model.value.entries.erase(model.value.entries.begin() + (preset - model.value.entries.data()));
  const ModelPreset* const found = FindModelPreset(name);
  if (found == nullptr) return {UnknownModel(name, PresetNames(), model.line)};
  FillFrom(ModelSectionOf(found->model), line, model.value);
  return {};
}

std::vector<ConfigProblem> ExpandModel(YamlNode& root) {
  YamlEntry* const model = FindEntry(root, "model");
  if (model == nullptr) return {};
  std::vector<ConfigProblem> problems;
  if (model->value.kind == YamlNode::Kind::kScalar) problems = ExpandModelName(*model);
  if (model->value.kind != YamlNode::Kind::kMap) return problems;
  for (ConfigProblem& problem : ExpandModelPreset(*model)) problems.push_back(std::move(problem));
  if (FindEntry(model->value, kExternal) == nullptr) return problems;
  // Its data needs no tokenizer.
  const int line = model->line;
  YamlNode* const data = FindOrAddSection(root, "data", line);
  if (data != nullptr) SetIfAbsent(*data, Setting("tokenizer", std::string(kNoTokenizer), line));
  return problems;
}

std::vector<ConfigProblem> ExpandOffenders(YamlNode* root) {
  YamlEntry* const offenders = FindEntry(*root, "offenders");
  if (offenders == nullptr || offenders->value.kind != YamlNode::Kind::kScalar) return {};
  const int line = offenders->line;
  const std::string preset = std::exchange(offenders->value, MakeNode(YamlNode::Kind::kMap, line)).scalar;
  if (preset != "strict") {
    return {
        {"offenders",
         absl::StrCat(Quoted(preset),
                      " is not a preset; allowed: strict (ban_after: 3 and a robust merge), or a section"),
         line}};
  }
  offenders->value.entries.push_back(Setting("ban_after", "3", line));
  ChooseMerge(*root, line);
  return {};
}

}  // namespace

std::vector<ConfigProblem> ExpandPresets(YamlNode* root) {
  if (root->kind != YamlNode::Kind::kMap) return {};
  std::vector<ConfigProblem> problems = ExpandModel(*root);
  for (ConfigProblem& problem : ExpandOffenders(root)) problems.push_back(std::move(problem));
  return problems;
}

}  // namespace atl
