#ifndef ATOLL_WORKER_APP_EVAL_EVAL_TASKS_H_
#define ATOLL_WORKER_APP_EVAL_EVAL_TASKS_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/log.h"
#include "worker/app/eval/eval_flags.h"
#include "worker/app/eval/eval_inputs.h"
#include "worker/app/eval/report.h"
#include "worker/app/loaded_model.h"

namespace atl {

/// Loads one model and measures it on every file. `name`: of the model, in the report and in messages.
absl::StatusOr<ModelResult> MeasureModel(const std::string& name, const ModelSource& source,
                                         const EvalFlags& flags, const EvalInputs& inputs, const Logger& log);

}  // namespace atl

#endif  // ATOLL_WORKER_APP_EVAL_EVAL_TASKS_H_
