#include "tokenizer/json_vocabulary.h"

#include <algorithm>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "core/foreign_name.h"

namespace atl {

absl::StatusOr<JsonVocabulary> ReadJsonVocabulary(const nlohmann::json* json, std::string_view field) {
  const std::string where = field.empty() ? "" : absl::StrFormat(" in %s", std::string(field));
  if (json == nullptr || !json->is_object() || json->empty()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("has no tokens%s: {token: id, ...} is expected", where));
  }
  JsonVocabulary vocabulary;
  vocabulary.ids.reserve(json->size());
  for (const auto& [name, id] : json->items()) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= kMaxVocabulary) {
      return absl::InvalidArgumentError(
          absl::StrFormat("has token '%s'%s with an id that is no number below %d", ForeignName(name), where,
                          kMaxVocabulary));
    }
    const auto value = id.get<TokenId>();
    vocabulary.ids.emplace(name, value);
    vocabulary.size = std::max<size_t>(vocabulary.size, value + size_t{1});
  }
  std::vector<bool> seen(vocabulary.size);
  for (const auto& [name, id] : vocabulary.ids) {
    if (seen[id])
      return absl::InvalidArgumentError(absl::StrFormat("has two tokens%s with the id %d", where, id));
    seen[id] = true;
  }
  return vocabulary;
}

}  // namespace atl
