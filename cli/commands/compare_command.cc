#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iostream>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/commands/commands.h"
#include "cli/compare/compare_view.h"
#include "cli/compare/read_run.h"
#include "cli/exit_code.h"
#include "cli/json.h"
#include "cli/output.h"
#include "cli/terminal.h"
#include "cli/text.h"
#include "common/command_line/help.h"
#include "common/command_line/parse.h"
#include "common/errno.h"
#include "common/partial_file.h"
#include "common/standard_output.h"
#include "common/status.h"
#include "nlohmann/json.hpp"

namespace atl {
namespace {

const std::map<std::string, CompareAxis>& Axes() {
  static const auto& axes = *new std::map<std::string, CompareAxis>{{"tokens", CompareAxis::kTokens},
                                                                    {"steps", CompareAxis::kSteps},
                                                                    {"rounds", CompareAxis::kRounds},
                                                                    {"time", CompareAxis::kTime},
                                                                    {"bytes", CompareAxis::kBytes}};
  return axes;
}

struct CompareOptions {
  std::vector<std::string> runs;
  std::string axis = "tokens";
  std::string loss = "validation";
  std::string html;
  bool csv = false;
  bool skip_unreachable = false;
};

/// The same kind of error, with the run before its message.
absl::Status AboutRun(const RunArgument& run, const absl::Status& status) {
  const std::string who =
      run.name.empty() ? Printable(run.source) : Printable(absl::StrFormat("%s (%s)", run.name, run.source));
  absl::Status named(status.code(), absl::StrFormat("%s: %s", who, std::string(status.message())));
  status.ForEachPayload(
      [&](absl::string_view url, const absl::Cord& payload) { named.SetPayload(url, payload); });
  return named;
}

/// "runs/fast.jsonl": "fast".
std::string StemOf(const std::string& path) {
  std::string name = path.substr(path.rfind('/') + 1);
  for (const char* const ending : {".jsonl", ".csv", ".json"}) {
    if (name.size() > std::string(ending).size() && absl::EndsWith(name, ending)) {
      return name.substr(0, name.size() - std::string(ending).size());
    }
  }
  return name;
}

class Comparer {
 public:
  Comparer(const GlobalOptions& global, const CompareOptions& options) : global_(global), options_(options) {}

  absl::StatusOr<CompareView> Read() {
    CompareView view{
        .axis = Axes().at(options_.axis),
        .loss = options_.loss == "training" ? ComparedLoss::kTraining : ComparedLoss::kValidation};
    std::vector<RunArgument> runs;
    for (const std::string& text : options_.runs) {
      ATOLL_ASSIGN_OR_RETURN(runs.emplace_back(), ParseRunArgument(text));
    }
    absl::Status skipped;
    for (const RunArgument& run : runs) {
      auto curve = ReadOne(run, view.loss);
      if (!curve.ok() && options_.skip_unreachable && absl::IsUnavailable(curve.status())) {
        skipped = AboutRun(run, curve.status());
        std::fprintf(stderr, "skipped: %s\n", std::string(skipped.message()).c_str());
        continue;
      }
      if (!curve.ok()) return AboutRun(run, curve.status());
      view.curves.push_back(*std::move(curve));
    }
    if (view.curves.empty()) return skipped;
    TellApart(view.curves);
    view.comparison = Compare(view.curves);
    return view;
  }

 private:
  absl::StatusOr<RunCurve> ReadOne(const RunArgument& run, ComparedLoss loss) const {
    CurveBuilder builder;
    std::string name = run.name;
    if (run.is_file) {
      const absl::Status read = ReadMetricsFile(run.source, builder);
      if (!read.ok()) return WithExitCode(read, ExitCode::kBadFiles);
      if (name.empty()) name = StemOf(run.source);
    } else {
      AdminClient client(run.source, Seconds(global_.timeout_s), global_.user, global_.security(),
                         WaitNoticeFor(global_));
      ATOLL_ASSIGN_OR_RETURN(const v1::GetStatusReply status, client.GetStatus(0));
      ATOLL_RETURN_IF_ERROR(client.ExportMetrics([&](const v1::MetricPoint& point) {
        builder.Add(point);
        return true;
      }));
      if (name.empty()) name = status.run_name();
    }
    auto curve = builder.Build(loss);
    if (!curve.ok()) return run.is_file ? curve.status() : FromCoordinator(curve.status());
    curve->name = name;
    curve->source = run.source;
    return curve;
  }

  /// Runs of one name get their sources behind it.
  static void TellApart(std::vector<RunCurve>& curves) {
    std::map<std::string, int> times;
    for (const RunCurve& curve : curves) ++times[curve.name];
    for (RunCurve& curve : curves) {
      if (times[curve.name] > 1) curve.name = absl::StrFormat("%s (%s)", curve.name, curve.source);
    }
  }

  const GlobalOptions& global_;
  const CompareOptions& options_;
};

absl::Status WriteHtml(const CompareView& view, const std::string& path) {
  const auto partial = PartialFile::Create(path);
  if (!partial.ok()) {
    return absl::Status(partial.status().code(),
                        absl::StrFormat("--html %s: %s", path, std::string(partial.status().message())));
  }
  std::ofstream file((*partial)->partial(), std::ios::binary | std::ios::trunc);
  if (!file) return ErrnoToStatus(errno, "open " + (*partial)->partial());
  file << CompareHtml(view);
  file.close();
  if (!file) return absl::ResourceExhaustedError(path + " cannot be written: is the disk full?");
  return (*partial)->Publish();
}

absl::Status CompareRuns(const GlobalOptions& global, const CompareOptions& options) {
  if (global.json && options.csv) {
    return absl::InvalidArgumentError("--json and --csv exclude each other: both write standard output");
  }
  ATOLL_ASSIGN_OR_RETURN(const CompareView view, Comparer(global, options).Read());
  if (!options.html.empty()) ATOLL_RETURN_IF_ERROR(WriteHtml(view, options.html));
  if (global.json) {
    PrintJson(CompareJson(view));
    return absl::OkStatus();
  }
  if (options.csv) {
    WriteCompareCsv(view, std::cout);
    std::cout.flush();
    return std::cout.good() ? absl::OkStatus()
                            : absl::ResourceExhaustedError("standard output cannot be written");
  }
  PrintLines(RenderComparison(view, InspectTerminal().style));
  if (!options.html.empty()) std::printf(" wrote %s\n", options.html.c_str());
  return absl::OkStatus();
}

}  // namespace

void AddCompareCommand(CLI::App& app, const GlobalOptions& global, Action& action) {
  CLI::App* const compare = app.add_subcommand(
      "compare", "Compare the losses of several runs: live ones, and files of metrics export");
  auto options = std::make_shared<CompareOptions>();
  compare
      ->add_option("RUN", options->runs,
                   "HOST:PORT of a coordinator's admin port, or a file of metrics export (csv or jsonl); "
                   "NAME=RUN names it")
      ->required();
  compare
      ->add_option("--axis", options->axis, "Horizontal axis; bytes: contributions, all fragments together")
      ->capture_default_str()
      ->check(CLI::IsMember({"tokens", "steps", "rounds", "time", "bytes"}));
  compare->add_option("--loss", options->loss, "Which loss to compare")
      ->capture_default_str()
      ->check(CLI::IsMember({"validation", "training"}));
  compare
      ->add_option("--html", options->html,
                   "Also write a page with the chart to this file; it needs no network")
      ->check(NotEmpty());
  compare->add_flag("--csv", options->csv, "Print the points as CSV");
  compare->add_flag("--skip-unreachable", options->skip_unreachable,
                    "Show the other runs if a coordinator does not answer");
  compare->callback(
      [&global, &action, options] { action = [&global, options] { return CompareRuns(global, *options); }; });
  SetHelp(*compare, {.examples = {{"atollctl compare 127.0.0.1:7601 before=metrics.jsonl",
                                   "The live run on this machine and an earlier one"},
                                  {"atollctl compare int4=a.csv e3m0=b.csv --axis bytes --html compare.html"},
                                  {"atollctl compare a.jsonl b.jsonl --json | jq '.runs[].best'"}},
                     .exit_codes = {ExitCode::kUnavailable, ExitCode::kStorage, ExitCode::kRejected,
                                    ExitCode::kBadFiles}});
}

}  // namespace atl
