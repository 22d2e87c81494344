#ifndef ATOLL_TOKENIZER_KNOWN_VOCABULARIES_H_
#define ATOLL_TOKENIZER_KNOWN_VOCABULARIES_H_

#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/bpe_model.h"

namespace atl {

/// A published vocabulary, recognised by its fingerprint.
struct KnownVocabulary {
  std::string_view name;
  std::string_view fingerprint;
  Pattern pattern;
};

/// SHA-256 of the tokens as a .tiktoken file, in hexadecimal: the same for the same tokens by id, whatever
/// their file. Empty ones are no tokens.
std::string VocabularyFingerprint(const std::vector<std::string>& tokens);

/// Null: not a published one.
const KnownVocabulary* FindKnownVocabulary(std::string_view fingerprint);

/// The special tokens that the .tiktoken file of a vocabulary does not name, as their makers define them.
/// `tokens` is the largest id in the file + 1.
std::vector<AddedToken> SpecialTokensOf(const KnownVocabulary& known, size_t tokens);

}  // namespace atl

#endif  // ATOLL_TOKENIZER_KNOWN_VOCABULARIES_H_
