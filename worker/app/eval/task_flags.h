#ifndef ATOLL_WORKER_APP_EVAL_TASK_FLAGS_H_
#define ATOLL_WORKER_APP_EVAL_TASK_FLAGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"

namespace atl {

/// The tasks that a worker can score while it trains or evaluates (evaluation.tasks).
struct TaskFlags {
  std::vector<std::string> files;  // "hellaswag=FILE"
  std::string examples;            // of MMLU
  uint32_t shots = 0;
  uint64_t limit = 0;             // questions of a file; 0: all
  std::string tokenizer;          // a name or a file; empty: that of the data
  std::string tokenizer_pattern;  // of a file that does not name its own
};

/// Adds --task and its companions, and --tokenizer.
void AddTaskFlags(CLI::App& app, TaskFlags& flags);

struct TaskFile {
  std::string task;
  std::string path;
};
/// The files of --task. Throws CLI::ValidationError for a name that is no task or is given twice, and without
/// a file.
std::vector<TaskFile> TaskFilesOf(const TaskFlags& flags);

}  // namespace atl

#endif  // ATOLL_WORKER_APP_EVAL_TASK_FLAGS_H_
