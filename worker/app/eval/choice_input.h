#ifndef ATOLL_WORKER_APP_EVAL_CHOICE_INPUT_H_
#define ATOLL_WORKER_APP_EVAL_CHOICE_INPUT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/token_width.h"
#include "worker/app/eval/choice.h"
#include "worker/data/tokenizer.h"

namespace atl {

/// Questions that are asked in one form, as text or in tokens.
struct ChoicePart {
  std::string key = {};  // before the names of its measures in JSON: "answers_"
  std::string of = {};   // behind their names in the table: " of answers"
  bool by_length = true;
  std::vector<ChoiceQuestion> text = {};
  std::vector<ChoiceTokens> tokens = {};
};

/// The questions of one file or folder.
struct ChoiceInput {
  std::string task = {};  // "hellaswag"
  std::string file = {};
  std::vector<ChoicePart> parts = {};
};

/// How questions are read.
struct ChoiceReading {
  size_t most = 0;            // questions of each file; 0: all
  uint32_t shots = 0;         // examples before each question of MMLU
  std::string examples = {};  // file or folder of them
};

/// Reads the file or folder of a task (kEvaluationTasks). Errors name the file and the line.
absl::StatusOr<ChoiceInput> ReadChoiceInput(std::string_view task, const std::string& path,
                                            const ChoiceReading& reading);

/// Whether some of it is text, which takes a tokenizer to score.
bool NeedsTokenizer(const ChoiceInput& input);

/// Turns its text into tokens, and puts `begin` before each question. `tokenizer` may be null if nothing
/// needs one.
void TurnIntoTokens(const Tokenizer* tokenizer, std::optional<TokenId> begin, ChoiceInput& input);

}  // namespace atl

#endif  // ATOLL_WORKER_APP_EVAL_CHOICE_INPUT_H_
