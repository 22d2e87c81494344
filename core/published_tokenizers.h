#ifndef ATOLL_CORE_PUBLISHED_TOKENIZERS_H_
#define ATOLL_CORE_PUBLISHED_TOKENIZERS_H_

namespace atl {

/// Names of published tokenizers that Atoll reads from their files (tokenizer/tokenizer_name.h). A run may
/// name others, such as `gpt2-1f0c77a2`.
inline constexpr const char* kPublishedTokenizers[] = {"gpt2",  "cl100k",  "o200k", "llama3",
                                                       "qwen2", "qwen2.5", "smollm"};

}  // namespace atl

#endif  // ATOLL_CORE_PUBLISHED_TOKENIZERS_H_
