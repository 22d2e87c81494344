#ifndef ATOLL_WORKER_APP_EVAL_CHOICE_SCORES_H_
#define ATOLL_WORKER_APP_EVAL_CHOICE_SCORES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/app/eval/choice.h"
#include "worker/app/eval/scorer.h"
#include "worker/data/tokenizer.h"

namespace atl {

/// The tokens of a question, divided as lm-evaluation-harness divides them: those of the context, and of each
/// answer what the tokens of "context answer" have beyond that many. Spaces at the context's end belong to
/// the answers.
ChoiceTokens EncodeQuestion(const Tokenizer& tokenizer, const ChoiceQuestion& question);

/// Whether an answer was chosen rightly, by each way of scoring.
struct ChoiceOutcome {
  bool right = false;            // by the sum of the log-probabilities of its tokens
  bool right_by_length = false;  // by that sum divided by the answer's length
};

/// Scores every answer after its context, whose oldest tokens are left out where the context of the model is
/// too short. The outcomes are in the order of the questions.
absl::StatusOr<std::vector<ChoiceOutcome>> ScoreChoices(std::span<const ChoiceTokens> questions,
                                                        const Scorer& scorer, const ScoreProgress& progress);

/// A share of questions, and its standard error.
struct Accuracy {
  double share = 0;
  double error = 0;
};
Accuracy AccuracyOf(size_t right, size_t questions);

}  // namespace atl

#endif  // ATOLL_WORKER_APP_EVAL_CHOICE_SCORES_H_
