#include "protos/config/check_evaluation.h"

#include <set>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/did_you_mean.h"
#include "core/evaluation_tasks.h"

namespace atl {
namespace {

constexpr char kTasks[] = "evaluation.tasks";

std::string NotKnown(const std::string& name) {
  const std::vector<std::string> known(std::begin(kEvaluationTasks), std::end(kEvaluationTasks));
  const std::string meant = DidYouMean(name, known);
  return absl::StrCat(Quoted(name), " is no task; ",
                      meant.empty() ? "" : absl::StrCat("did you mean '", meant, "'? "),
                      "allowed: ", absl::StrJoin(known, ", "));
}

/// Why no text can be scored with the run's model; empty: it can.
std::string_view WhyNotScored(const v1::ModelSection& model) {
  if (model.has_external()) {
    return "a run with an external model has no tasks, because only the program of its workers can compute "
           "with the model; remove the field, and score the tasks in that program";
  }
  if (model.has_torchscript()) {
    return "a run with a model.torchscript has no tasks, because its file returns a loss and no "
           "probabilities of tokens; remove the field";
  }
  return "";
}

}  // namespace

std::vector<std::string> TaskNames(const std::string& text) {
  std::vector<std::string> names;
  if (absl::StripAsciiWhitespace(text).empty()) return names;
  for (const absl::string_view name : absl::StrSplit(text, ',')) {
    names.emplace_back(absl::StripAsciiWhitespace(name));
  }
  return names;
}

std::vector<ConfigProblem> CheckEvaluation(const v1::RunConfig& config) {
  std::vector<ConfigProblem> problems;
  const std::vector<std::string> names = TaskNames(config.evaluation().tasks());
  std::set<std::string> seen;
  for (const std::string& name : names) {
    if (name.empty()) {
      problems.push_back({kTasks, "a name is missing beside a comma", 0});
    } else if (!IsEvaluationTask(name)) {
      problems.push_back({kTasks, NotKnown(name), 0});
    } else if (!seen.insert(name).second) {
      problems.push_back({kTasks, absl::StrCat("'", name, "' is given twice"), 0});
    }
  }
  const std::string_view why = WhyNotScored(config.model());
  if (!names.empty() && !why.empty()) problems.push_back({kTasks, std::string(why), 0});
  return problems;
}

}  // namespace atl
