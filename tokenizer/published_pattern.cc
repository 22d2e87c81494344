#include "tokenizer/published_pattern.h"

#include <string>

#include "absl/strings/str_format.h"
#include "core/foreign_name.h"
#include "tokenizer/known_vocabularies.h"

namespace atl {

absl::Status SetPublishedPattern(std::string_view name, BpeModel& model) {
  const std::optional<Pattern> named = PatternOfName(name);
  if (!name.empty() && !named) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "cannot be read with the pattern '%s'; the known ones are %s", ForeignName(name), kPatternNames));
  }
  const KnownVocabulary* const known = FindKnownVocabulary(VocabularyFingerprint(model.tokens));
  if (known == nullptr && !named) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "has a vocabulary that Atoll does not know, and such a file does not say how it divides "
        "text; name its pattern (--tokenizer-pattern: %s), or its tokenizer.json instead",
        kPatternNames));
  }
  if (known != nullptr && named && *named != *PatternOfName(known->name)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("has the vocabulary of %s, and not of '%s'; leave out the pattern",
                        std::string(known->name), ForeignName(name)));
  }
  model.pattern = known != nullptr ? known->pattern : *named;
  model.nfc = model.pattern == Pattern::kQwen2;
  return absl::OkStatus();
}

}  // namespace atl
