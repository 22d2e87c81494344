#ifndef ATOLL_TOKENIZER_PUBLISHED_PATTERN_H_
#define ATOLL_TOKENIZER_PUBLISHED_PATTERN_H_

#include <string_view>

#include "absl/status/status.h"
#include "tokenizer/bpe_model.h"

namespace atl {

/// Sets the pattern and the normalization of a model whose file names none: those of its published
/// vocabulary, or else of the name that the caller gave. InvalidArgument, with a text that continues "FILE
/// ...", without either, or if the two differ.
absl::Status SetPublishedPattern(std::string_view name, BpeModel& model);

}  // namespace atl

#endif  // ATOLL_TOKENIZER_PUBLISHED_PATTERN_H_
