#ifndef ATOLL_WORKER_APP_EVAL_TASK_SUITE_H_
#define ATOLL_WORKER_APP_EVAL_TASK_SUITE_H_

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/sync/replica.h"
#include "common/log.h"
#include "core/run_options.h"
#include "worker/app/eval/choice_input.h"
#include "worker/app/eval/task_flags.h"
#include "worker/torch/torch_replica.h"

namespace atl {

/// The tasks of a worker's process: their questions in tokens, in memory while the process lives. One thread
/// uses it at a time.
class TaskSuite {
 public:
  /// Reads the files of --task and turns them into tokens. `data_tokenizer`: the name of the tokenizer that
  /// made the worker's dataset. Errors name the file, or say which tokenizer is missing. Throws as
  /// TaskFilesOf.
  static absl::StatusOr<std::unique_ptr<TaskSuite>> Create(const TaskFlags& flags,
                                                           const std::string& data_tokenizer,
                                                           const Logger& log);

  /// Warns, once, of files that the run does not ask for.
  void CompareWith(const RunOptions& run);

  /// Replica::ScoreTasks for a model that sees `context` tokens.
  absl::StatusOr<std::vector<TaskScore>> Score(TorchReplica& model, uint32_t context, const TaskCall& call);

 private:
  explicit TaskSuite(const Logger& log) : log_(log) {}
  const ChoiceInput* Find(const std::string& task) const;
  void WarnOnce(const std::string& text);

  const Logger log_;
  std::vector<ChoiceInput> inputs_;
  std::set<std::string> said_;
};

}  // namespace atl

#endif  // ATOLL_WORKER_APP_EVAL_TASK_SUITE_H_
