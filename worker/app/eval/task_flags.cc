#include "worker/app/eval/task_flags.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/command_line/parse.h"
#include "common/did_you_mean.h"
#include "core/evaluation_tasks.h"
#include "worker/app/source_flags.h"

namespace atl {
namespace {

constexpr char kTask[] = "--task";
constexpr char kGroup[] = "Tasks of evaluation.tasks";

[[noreturn]] void Reject(const std::string& why) { throw CLI::ValidationError(kTask, why); }

}  // namespace

void AddTaskFlags(CLI::App& app, TaskFlags& flags) {
  CLI::Option* const task =
      app.add_option(kTask, flags.files,
                     "Score this task with the evaluations that ask for it: hellaswag=FILE, mmlu=FILE or "
                     "mmlu=FOLDER, choices=FILE (multiple-choice file of llm.c); repeat it for several")
          ->allow_extra_args(false)
          ->type_name("NAME=FILE")
          ->group(kGroup);
  app.add_option("--task-limit", flags.limit,
                 "Score the first questions of each file only, this many; 0: all")
      ->capture_default_str()
      ->check(NotNegative())
      ->needs(task)
      ->group(kGroup);
  CLI::Option* const examples = app.add_option("--task-examples", flags.examples,
                                               "File or folder of the examples of --task-shots (dev)")
                                    ->check(NotEmpty())
                                    ->needs(task)
                                    ->group(kGroup);
  app.add_option("--task-shots", flags.shots, "Examples before each question of MMLU")
      ->capture_default_str()
      ->check(CLI::Range(0, 100))
      ->needs(examples)
      ->group(kGroup);
  AddTokenizer(app, flags.tokenizer, flags.tokenizer_pattern);
}

std::vector<TaskFile> TaskFilesOf(const TaskFlags& flags) {
  const std::vector<std::string> known(std::begin(kEvaluationTasks), std::end(kEvaluationTasks));
  std::vector<TaskFile> files;
  for (const std::string& given : flags.files) {
    const size_t equals = given.find('=');
    const std::string name = given.substr(0, equals);
    if (equals == std::string::npos || equals + 1 == given.size()) {
      Reject(absl::StrCat("'", given, "': write NAME=FILE, for example hellaswag=hellaswag_val.jsonl"));
    }
    if (!IsEvaluationTask(name)) {
      const std::string meant = DidYouMean(name, known);
      Reject(absl::StrCat("'", name, "' is no task; ",
                          meant.empty() ? "" : absl::StrCat("did you mean '", meant, "'? "),
                          "allowed: ", absl::StrJoin(known, ", ")));
    }
    if (std::ranges::find(files, name, &TaskFile::task) != files.end()) {
      Reject(absl::StrCat("'", name, "' is given twice; a task has one file or folder"));
    }
    files.push_back({.task = name, .path = given.substr(equals + 1)});
  }
  return files;
}

}  // namespace atl
