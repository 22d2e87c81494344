#include "protos/config/presets.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/did_you_mean.h"
#include "core/tokenizer_names.h"

namespace atl {
namespace {

constexpr std::string_view kExternal = "external";

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

/// Gives the field a value, unless the file does. Leaves what is no section to the reader.
void SetIfAbsent(YamlNode& root, const std::string& section, YamlEntry field) {
  if (FindEntry(root, section) == nullptr) {
    root.entries.push_back({section, field.line, MakeNode(YamlNode::Kind::kMap, field.line)});
  }
  YamlNode& node = FindEntry(root, section)->value;
  if (node.kind == YamlNode::Kind::kNull) node.kind = YamlNode::Kind::kMap;
  if (node.kind != YamlNode::Kind::kMap || FindEntry(node, field.key) != nullptr) return;
  node.entries.push_back(std::move(field));
}

ConfigProblem NoModel(const std::string& word, int line) {
  const std::string meant = DidYouMean(word, {std::string(kExternal)});
  return {
      "model",
      absl::StrCat(Quoted(word), " is no model; ",
                   meant.empty() ? "" : absl::StrCat("did you mean '", meant, "'? "),
                   "allowed: external, for a model of your own, or a section with gpt, for Atoll's own GPT"),
      line};
}

/// `model: external` is a section with its defaults, and its data needs no tokenizer. Another word is a
/// problem, and then taken for this one: what else may be wrong depends on the model.
std::vector<ConfigProblem> ExpandExternalModel(YamlNode& root) {
  YamlEntry* const model = FindEntry(root, "model");
  if (model == nullptr) return {};
  const int line = model->line;
  std::vector<ConfigProblem> problems;
  if (model->value.kind == YamlNode::Kind::kScalar) {
    if (model->value.scalar != kExternal) problems.push_back(NoModel(model->value.scalar, line));
    model->value = MakeNode(YamlNode::Kind::kMap, line);
    model->value.entries.push_back({std::string(kExternal), line, MakeNode(YamlNode::Kind::kMap, line)});
  }
  if (model->value.kind == YamlNode::Kind::kMap && FindEntry(model->value, kExternal) != nullptr)
    SetIfAbsent(root, "data", Setting("tokenizer", std::string(kNoTokenizer), line));
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
  std::vector<ConfigProblem> problems = ExpandExternalModel(*root);
  for (ConfigProblem& problem : ExpandOffenders(root)) problems.push_back(std::move(problem));
  return problems;
}

}  // namespace atl
