#include "worker/app/eval/task_suite.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/status.h"
#include "worker/app/eval/choice_task.h"
#include "worker/app/model_tokenizer.h"

namespace atl {
namespace {

Scorer ScorerOf(TorchReplica& model, uint32_t context, const TaskCall& call) {
  return {.context = context, .score = [&](std::span<const ScoreRequest> requests) {
            return model.Score(requests,
                               {.precision = ScorePrecision::kFloat32, .interrupted = call.interrupted});
          }};
}

std::vector<TaskScore> ScoresOf(const TaskResult& result) {
  std::vector<TaskScore> scores;
  for (const Measure& measure : result.measures) {
    scores.push_back({.task = result.task,
                      .metric = measure.key,
                      .value = measure.value.value_or(0),
                      .standard_error = measure.error.value_or(0),
                      .questions = result.count});
  }
  return scores;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TaskSuite>> TaskSuite::Create(const TaskFlags& flags,
                                                             const std::string& data_tokenizer,
                                                             const Logger& log) {
  std::unique_ptr<TaskSuite> suite(new TaskSuite(log));
  const ChoiceReading reading = {.most = flags.limit, .shots = flags.shots, .examples = flags.examples};
  for (const TaskFile& file : TaskFilesOf(flags)) {
    ATOLL_ASSIGN_OR_RETURN(ChoiceInput input, ReadChoiceInput(file.task, file.path, reading));
    suite->inputs_.push_back(std::move(input));
  }
  const auto text = std::ranges::find_if(suite->inputs_, NeedsTokenizer);
  std::unique_ptr<Tokenizer> tokenizer;
  if (text != suite->inputs_.end()) {
    auto found = TokenizerOfModel(
        {.name = flags.tokenizer, .pattern = flags.tokenizer_pattern, .of_run = data_tokenizer});
    if (!found.ok()) {
      return absl::Status(found.status().code(),
                          absl::StrFormat("--task %s=%s is text: %s; give the model's tokenizer (--tokenizer "
                                          "gpt2/tokenizer.json)",
                                          text->task, text->file, std::string(found.status().message())));
    }
    tokenizer = *std::move(found);
    ATOLL_RETURN_IF_ERROR(CheckTokenizerOfRun(*tokenizer, data_tokenizer));
  }
  for (ChoiceInput& input : suite->inputs_) TurnIntoTokens(tokenizer.get(), std::nullopt, input);
  return suite;
}

const ChoiceInput* TaskSuite::Find(const std::string& task) const {
  const auto found = std::ranges::find(inputs_, task, &ChoiceInput::task);
  return found == inputs_.end() ? nullptr : &*found;
}

void TaskSuite::WarnOnce(const std::string& text) {
  if (said_.insert(text).second) log_.Warning(text);
}

void TaskSuite::CompareWith(const RunOptions& run) {
  for (const ChoiceInput& input : inputs_) {
    if (std::ranges::find(run.evaluation_tasks, input.task) != run.evaluation_tasks.end()) continue;
    std::vector<std::string> wanted = run.evaluation_tasks;
    wanted.push_back(input.task);
    WarnOnce(
        absl::StrFormat("--task %s: the run does not ask for it. An operator adds it with `atollctl config "
                        "set evaluation.tasks=%s`",
                        input.task, absl::StrJoin(wanted, ",")));
  }
}

absl::StatusOr<std::vector<TaskScore>> TaskSuite::Score(TorchReplica& model, uint32_t context,
                                                        const TaskCall& call) {
  std::vector<TaskScore> scores;
  const Scorer scorer = ScorerOf(model, context, call);
  for (const std::string& task : call.tasks) {
    const ChoiceInput* const input = Find(task);
    if (input == nullptr) {
      WarnOnce(
          absl::StrFormat("the run asks for the task '%s', and this process has no file for it: start it "
                          "with --task %s=FILE",
                          task, task));
      continue;
    }
    const auto result = ScoreChoiceInput(*input, scorer, [&](const ChoicePart& part, uint64_t done) {
      call.progress(absl::StrFormat("%s%s, %d of %d questions", task, part.of, done, part.tokens.size()));
    });
    if (absl::IsCancelled(result.status())) return result.status();
    if (!result.ok()) {
      WarnOnce(absl::StrFormat("the task '%s' cannot be scored: %s: %s", task, input->file,
                               std::string(result.status().message())));
      continue;
    }
    for (TaskScore& score : ScoresOf(*result)) scores.push_back(std::move(score));
  }
  return scores;
}

}  // namespace atl
