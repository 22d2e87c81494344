#ifndef ATOLL_WORKER_APP_EVAL_MMLU_H_
#define ATOLL_WORKER_APP_EVAL_MMLU_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/app/eval/choice.h"

namespace atl {

/// A question of MMLU (Hendrycks et al., arXiv 2009.03300).
struct MmluQuestion {
  std::string subject = {};  // "abstract_algebra"
  std::string question = {};
  std::vector<std::string> answers = {};
  size_t right = 0;
};

/// The questions of a file, or of every .csv and .jsonl file of a folder: at most `most` of each file (0:
/// all). CSV has the rows "question,A,B,C,D,letter" and no heading; its subject is the file's name without
/// _test, _val or _dev. JSON lines have question, choices, answer (an index or a letter), and perhaps
/// subject. Errors name the file and the line.
absl::StatusOr<std::vector<MmluQuestion>> ReadMmlu(const std::string& path, size_t most);

/// What the model chooses among: the letter of an answer, or its text.
enum class MmluForm : uint8_t { kLetter, kAnswer };

/// The questions as lm-evaluation-harness writes them (its tasks mmlu and mmlu_continuation), after the first
/// `shots` examples of their subject. InvalidArgument names a subject that has fewer.
absl::StatusOr<std::vector<ChoiceQuestion>> MmluChoices(std::span<const MmluQuestion> questions,
                                                        std::span<const MmluQuestion> examples, size_t shots,
                                                        MmluForm form);

}  // namespace atl

#endif  // ATOLL_WORKER_APP_EVAL_MMLU_H_
