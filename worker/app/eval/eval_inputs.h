#ifndef ATOLL_WORKER_APP_EVAL_EVAL_INPUTS_H_
#define ATOLL_WORKER_APP_EVAL_EVAL_INPUTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/app/eval/choice_input.h"
#include "worker/app/eval/eval_flags.h"

namespace atl {

struct TextInput {
  std::string file = {};
  std::string text = {};
};

/// What the files hold that do not depend on a model.
struct EvalInputs {
  std::vector<TextInput> texts = {};
  std::vector<ChoiceInput> choices = {};
};

/// Reads them, so that a wrong file is known before a model is loaded.
absl::StatusOr<EvalInputs> ReadInputs(const EvalFlags& flags);

}  // namespace atl

#endif  // ATOLL_WORKER_APP_EVAL_EVAL_INPUTS_H_
