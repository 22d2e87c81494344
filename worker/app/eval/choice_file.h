#ifndef ATOLL_WORKER_APP_EVAL_CHOICE_FILE_H_
#define ATOLL_WORKER_APP_EVAL_CHOICE_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/app/eval/choice.h"

namespace atl {

// llm.c's file of questions with several answers (github.com/karpathy/llm.c, dev/data/data_common.py): 256
// little-endian int32 values (magic, version, number of questions, bytes of the longest question, zeros),
// then for each question little-endian uint16 values: kChoiceBegin, bytes of the question, its index, the
// right answer, number of answers, length of the context, the context's tokens, and for each answer its
// length and its tokens.
inline constexpr int32_t kChoiceMagic = 20240522;
inline constexpr int32_t kChoiceVersion = 1;
inline constexpr size_t kChoiceHeaderBytes = 1024;
inline constexpr uint16_t kChoiceBegin = 65535;

/// The first `most` questions of such a file (0: all). The length of an answer is its number of tokens, as
/// llm.c counts. Errors name the file and the question.
absl::StatusOr<std::vector<ChoiceTokens>> ReadChoiceFile(const std::string& path, size_t most);

}  // namespace atl

#endif  // ATOLL_WORKER_APP_EVAL_CHOICE_FILE_H_
