#ifndef ATOLL_WORKER_APP_EVAL_REPORT_H_
#define ATOLL_WORKER_APP_EVAL_REPORT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace atl {

/// One number of a task.
struct Measure {
  std::string key = {};    // in JSON: "acc_norm"
  std::string label = {};  // in the table: "accuracy by length"
  std::optional<double> value = {};
  std::optional<double> error = {};  // standard error
};

/// What one model reached in one task.
struct TaskResult {
  std::string task = {};  // "hellaswag"
  std::string file = {};
  std::string unit = {};  // of `count`: "questions"
  uint64_t count = 0;
  std::vector<Measure> measures = {};
  std::vector<std::string> notes = {};  // why a value is missing
  std::map<std::string, std::vector<Measure>> subjects = {};
};

struct ModelResult {
  std::string model = {};
  std::vector<TaskResult> tasks = {};
};

/// A table: the models side by side, a row for each number. All models have the same tasks in the same order.
std::string ReportTable(std::span<const ModelResult> models);

/// {"models": [{"model": ..., "tasks": [{"task": ..., "file": ..., "questions": 100, "acc": 0.3,
/// "acc_stderr": 0.05}]}]}. Values that are not known are absent.
std::string ReportJson(std::span<const ModelResult> models);

}  // namespace atl

#endif  // ATOLL_WORKER_APP_EVAL_REPORT_H_
