#ifndef ATOLL_TOKENIZER_JSON_VOCABULARY_H_
#define ATOLL_TOKENIZER_JSON_VOCABULARY_H_

#include <cstddef>
#include <string_view>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "tokenizer/merge_rules.h"

// For source files only, as core/bounded_json.h.

namespace atl {

/// Borrows the names from the JSON.
struct JsonVocabulary {
  MergeRules::Ids ids;
  size_t size = 0;  // the largest id + 1
};

/// {token: id, ...}. InvalidArgument, with a text that continues "FILE ..."; `field` is its name there, empty
/// for the whole file. Null counts as a wrong type.
absl::StatusOr<JsonVocabulary> ReadJsonVocabulary(const nlohmann::json* json, std::string_view field);

}  // namespace atl

#endif  // ATOLL_TOKENIZER_JSON_VOCABULARY_H_
