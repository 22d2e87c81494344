#ifndef ATOLL_TOKENIZER_FILES_H_
#define ATOLL_TOKENIZER_FILES_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "tokenizer/bpe_model.h"

// The three formats of tokenizers. Errors are InvalidArgument, with a text that continues "FILE ...": the
// field, what is wrong with it, and what to do.

namespace atl {

inline constexpr uint64_t kMaxTiktokenFile = uint64_t{16} << 20;
inline constexpr uint64_t kMaxTokenizerJson = uint64_t{128} << 20;

/// tokenizer.json of Hugging Face's tokenizers.
absl::StatusOr<BpeModel> ParseTokenizerJson(std::string_view text);

/// Lines of "BASE64 ID". The file names neither pattern nor special tokens: those of a published vocabulary
/// are known, and `pattern` (a name of tokenizer/pattern.h) is for others, which have no special tokens.
absl::StatusOr<BpeModel> ParseTiktoken(std::string_view text, std::string_view pattern);

/// vocab.json, {token: id}, and merges.txt, "LEFT RIGHT" by rank. They name no pattern either; special tokens
/// are the entries of the form <|...|>.
absl::StatusOr<BpeModel> ParseVocabAndMerges(std::string_view vocab, std::string_view merges,
                                             std::string_view pattern);

}  // namespace atl

#endif  // ATOLL_TOKENIZER_FILES_H_
