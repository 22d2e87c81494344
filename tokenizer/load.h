#ifndef ATOLL_TOKENIZER_LOAD_H_
#define ATOLL_TOKENIZER_LOAD_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "tokenizer/bpe_tokenizer.h"

namespace atl {

/// Reads a tokenizer: a tokenizer.json, a vocab.json or merges.txt with the other one beside it, a .tiktoken
/// file (Llama 3 calls it tokenizer.model), or a folder with one of them, looked for in this order. `pattern`
/// is for files that name none and hold no published vocabulary: one of kPatternNames, or empty. Errors name
/// the file. NotFound and others of common/file.h; InvalidArgument for a tokenizer that Atoll does not have,
/// with what to do.
absl::StatusOr<std::unique_ptr<BpeTokenizer>> LoadTokenizer(const std::string& path,
                                                            const std::string& pattern = "");

}  // namespace atl

#endif  // ATOLL_TOKENIZER_LOAD_H_
