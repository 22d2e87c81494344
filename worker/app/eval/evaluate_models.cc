#include <cstdio>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/setup/setup_error.h"
#include "common/status.h"
#include "worker/app/eval/eval_flags.h"
#include "worker/app/eval/eval_inputs.h"
#include "worker/app/eval/eval_tasks.h"
#include "worker/app/eval/report.h"
#include "worker/app/write_output.h"

namespace atl {
namespace {

struct NamedSource {
  std::string name;
  ModelSource source;
};

/// In the order of the options: files, versions, checkpoints.
std::vector<NamedSource> SourcesOf(const EvalFlags& flags) {
  std::vector<NamedSource> sources;
  const auto add = [&](std::string name) -> ModelSource& {
    NamedSource& added = sources.emplace_back(NamedSource{.name = std::move(name), .source = flags.source});
    added.source.exact = true;
    return added.source;
  };
  for (std::string path : flags.models) {
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    add(path).files = path;
  }
  for (const uint64_t version : flags.versions)
    add(absl::StrCat("version ", version)).stored.version = version;
  for (const std::string& checkpoint : flags.checkpoints) {
    add(absl::StrCat("checkpoint ", checkpoint)).stored.checkpoint = checkpoint;
  }
  if (sources.empty()) add("newest version");
  return sources;
}

absl::StatusOr<std::vector<ModelResult>> MeasureAll(const EvalFlags& flags, const Logger& log) {
  const auto inputs = ReadInputs(flags);
  if (!inputs.ok()) return WithExitCode(inputs.status(), ExitCode::kBadFiles);
  std::vector<ModelResult> results;
  for (const NamedSource& one : SourcesOf(flags)) {
    ATOLL_ASSIGN_OR_RETURN(ModelResult result, MeasureModel(one.name, one.source, flags, *inputs, log));
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace

ExitCode EvaluateModels(const EvalFlags& flags, const Logger& log) {
  const auto results = MeasureAll(flags, log);
  absl::Status status = results.status();
  if (results.ok()) status = WriteOutput(flags.json ? ReportJson(*results) : ReportTable(*results), stdout);
  if (status.ok()) return ExitCode::kOk;
  log.Error(std::string(status.message()));
  return ModelExitCode(status, !flags.models.empty());
}

}  // namespace atl
