#include "worker/app/eval/report.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"

namespace atl {
namespace {

constexpr size_t kLeast = 8;

size_t Characters(const std::string& text) {
  return static_cast<size_t>(std::ranges::count_if(
      text, [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }));
}

std::string Padded(const std::string& text, size_t width, bool right) {
  const std::string space(width - std::min(width, Characters(text)), ' ');
  return right ? space + text : text + space;
}

std::string Text(const Measure& measure) {
  if (!measure.value) return "unknown";
  std::string text = absl::StrFormat("%.4f", *measure.value);
  if (measure.error) absl::StrAppend(&text, absl::StrFormat(" ±%.4f", *measure.error));
  return text;
}

/// A row of the table: a text, and one for each model; none under a heading.
struct Row {
  std::string label = {};
  std::vector<std::string> values = {};
};

std::vector<Row> RowsOf(std::span<const ModelResult> models) {
  std::vector<Row> rows = {{.label = "", .values = {}}};
  for (const ModelResult& model : models) rows[0].values.push_back(model.model);
  for (size_t t = 0; t < models[0].tasks.size(); ++t) {
    const TaskResult& task = models[0].tasks[t];
    // Tokens are of a tokenizer, so their number may differ.
    const bool same =
        std::ranges::all_of(models, [&](const ModelResult& m) { return m.tasks[t].count == task.count; });
    rows.push_back(
        {.label = same ? absl::StrCat(task.file, "  (", task.count, " ", task.unit, ")") : task.file});
    if (!same) {
      Row& counts = rows.emplace_back(Row{.label = "  " + task.unit});
      for (const ModelResult& model : models) counts.values.push_back(absl::StrCat(model.tasks[t].count));
    }
    for (size_t m = 0; m < task.measures.size(); ++m) {
      Row& row = rows.emplace_back(Row{.label = "  " + task.measures[m].label});
      for (const ModelResult& model : models) row.values.push_back(Text(model.tasks[t].measures[m]));
    }
  }
  return rows;
}

nlohmann::json JsonOf(const std::vector<Measure>& measures) {
  nlohmann::json json = nlohmann::json::object();
  for (const Measure& measure : measures) {
    if (measure.value) json[measure.key] = *measure.value;
    if (measure.error) json[measure.key + "_stderr"] = *measure.error;
  }
  return json;
}

}  // namespace

std::string ReportTable(std::span<const ModelResult> models) {
  if (models.empty()) return "";
  const std::vector<Row> rows = RowsOf(models);
  size_t first = 0;
  std::vector<size_t> widths(models.size(), kLeast);
  for (const Row& row : rows) {
    if (!row.values.empty()) first = std::max(first, Characters(row.label));
    for (size_t i = 0; i < row.values.size(); ++i) widths[i] = std::max(widths[i], Characters(row.values[i]));
  }
  std::string table;
  for (const Row& row : rows) {
    std::string line = row.values.empty() ? row.label : Padded(row.label, first, /*right=*/false);
    for (size_t i = 0; i < row.values.size(); ++i) {
      absl::StrAppend(&line, "  ", Padded(row.values[i], widths[i], /*right=*/true));
    }
    absl::StrAppend(&table, line, "\n");
  }
  std::set<std::string> said;
  for (const ModelResult& model : models) {
    for (const TaskResult& task : model.tasks) {
      for (const std::string& note : task.notes) {
        if (said.insert(note).second) absl::StrAppend(&table, note, "\n");
      }
    }
  }
  return table;
}

std::string ReportJson(std::span<const ModelResult> models) {
  nlohmann::json all = nlohmann::json::array();
  for (const ModelResult& model : models) {
    nlohmann::json tasks = nlohmann::json::array();
    for (const TaskResult& task : model.tasks) {
      nlohmann::json json = JsonOf(task.measures);
      json["task"] = task.task;
      json["file"] = task.file;
      json[task.unit] = task.count;
      if (!task.notes.empty()) json["notes"] = task.notes;
      for (const auto& [subject, measures] : task.subjects) json["subjects"][subject] = JsonOf(measures);
      tasks.push_back(std::move(json));
    }
    all.push_back({{"model", model.model}, {"tasks", std::move(tasks)}});
  }
  return nlohmann::json{{"models", std::move(all)}}.dump(2, ' ', false,
                                                         nlohmann::json::error_handler_t::replace) +
         "\n";
}

}  // namespace atl
