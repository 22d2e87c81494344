#include "tokenizer/merge_rules.h"

#include "absl/strings/str_format.h"
#include "core/foreign_name.h"

namespace atl {

absl::Status MergeRules::Refuse(std::string_view why, std::string_view what) const {
  return absl::InvalidArgumentError(
      absl::StrFormat("merge %d %s '%s'; the file does not belong to its vocabulary, download both again",
                      rules_.size() + 1, std::string(why), ForeignName(what)));
}

absl::Status MergeRules::Add(std::string_view left, std::string_view right) {
  if (rules_.size() >= kMaxMergeRules) {
    return absl::InvalidArgumentError(absl::StrFormat("has more than %d merges", kMaxMergeRules));
  }
  const auto first = ids_.find(left);
  if (first == ids_.end()) return Refuse("names a token that the vocabulary lacks:", left);
  const auto second = ids_.find(right);
  if (second == ids_.end()) return Refuse("names a token that the vocabulary lacks:", right);
  joined_.assign(left);
  joined_.append(right);
  const auto result = ids_.find(joined_);
  if (result == ids_.end()) return Refuse("makes a token that the vocabulary lacks:", joined_);
  rules_.push_back({first->second, second->second, result->second});
  return absl::OkStatus();
}

absl::Status MergeRules::Add(std::string_view rule) {
  const size_t space = rule.find(' ');
  if (space == std::string_view::npos || rule.find(' ', space + 1) != std::string_view::npos) {
    return Refuse("is not 'LEFT RIGHT':", rule);
  }
  return Add(rule.substr(0, space), rule.substr(space + 1));
}

}  // namespace atl
