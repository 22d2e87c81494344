#include <algorithm>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "common/status.h"
#include "core/bounded_json.h"
#include "core/foreign_name.h"
#include "tokenizer/byte_level.h"
#include "tokenizer/files.h"
#include "tokenizer/json_vocabulary.h"
#include "tokenizer/merge_rules.h"
#include "tokenizer/published_pattern.h"

namespace atl {
namespace {

absl::Status ReadMerges(std::string_view text, MergeRules& rules) {
  bool first = true;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    const bool version = first && line.starts_with("#version");
    first = false;
    if (line.empty() || version) continue;
    ATOLL_RETURN_IF_ERROR(rules.Add(line));
  }
  return absl::OkStatus();
}

/// Tokens that no merge makes cannot come from a text: they are special.
void SplitSpecial(const JsonVocabulary& vocabulary, BpeModel& model) {
  std::vector<bool> made(model.tokens.size());
  for (const MergeRule& rule : model.merges) made[rule.result] = true;
  for (const auto& [name, id] : vocabulary.ids) {
    const auto bytes = FromByteLevel(name);
    if (bytes && (bytes->size() == 1 || made[id])) {
      model.tokens[id] = *bytes;
    } else {
      model.added.push_back({.id = id, .content = std::string(name), .special = true});
    }
  }
  std::ranges::sort(model.added, {}, &AddedToken::id);
}

}  // namespace

absl::StatusOr<BpeModel> ParseVocabAndMerges(std::string_view vocab, std::string_view merges,
                                             std::string_view pattern) {
  const auto json = ParseBoundedJson(vocab, {.depth = 1, .values = 2 * size_t{kMaxVocabulary} + 2});
  if (!json.ok()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s; a vocab.json holds {token: id, ...}", std::string(json.status().message())));
  }
  ATOLL_ASSIGN_OR_RETURN(const JsonVocabulary vocabulary, ReadJsonVocabulary(&*json, ""));
  BpeModel model;
  model.order = MergeOrder::kByRule;
  model.whole_pieces = false;
  model.tokens.resize(vocabulary.size);
  MergeRules rules(vocabulary.ids);
  ATOLL_RETURN_IF_ERROR(ReadMerges(merges, rules));
  model.merges = rules.Take();
  SplitSpecial(vocabulary, model);
  ATOLL_RETURN_IF_ERROR(SetPublishedPattern(pattern, model));
  return model;
}

}  // namespace atl
