#ifndef ATOLL_TOKENIZER_MERGE_RULES_H_
#define ATOLL_TOKENIZER_MERGE_RULES_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "tokenizer/bpe_model.h"

namespace atl {

/// Rules of merging over the names of a vocabulary, in the order of their ranks.
class MergeRules {
 public:
  /// Tokens as they are written in the file. Borrowed.
  using Ids = absl::flat_hash_map<std::string_view, TokenId>;
  explicit MergeRules(const Ids& ids) : ids_(ids) {}

  /// InvalidArgument, with a text that continues "FILE ...": a part or the result is no token.
  absl::Status Add(std::string_view left, std::string_view right);
  /// A rule as one text, "LEFT RIGHT".
  absl::Status Add(std::string_view rule);
  std::vector<MergeRule> Take() { return std::move(rules_); }

 private:
  absl::Status Refuse(std::string_view why, std::string_view what) const;

  const Ids& ids_;
  std::vector<MergeRule> rules_;
  std::string joined_;
};

/// More rules than a vocabulary of any published tokenizer has.
inline constexpr size_t kMaxMergeRules = size_t{4} << 20;

}  // namespace atl

#endif  // ATOLL_TOKENIZER_MERGE_RULES_H_
