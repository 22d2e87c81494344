#include <cerrno>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iostream>

#include "absl/strings/str_format.h"
#include "cli/commands/commands.h"
#include "cli/json.h"
#include "cli/loss_text.h"
#include "cli/metric_writer.h"
#include "cli/output.h"
#include "cli/text.h"
#include "common/command_line/help.h"
#include "common/command_line/parse.h"
#include "common/errno.h"
#include "common/human.h"
#include "common/output_target.h"
#include "common/partial_file.h"
#include "common/status.h"
#include "nlohmann/json.hpp"

namespace atl {
namespace {

std::string Loss(double loss) { return loss != 0 ? LossNumber(loss, 0, 4) : "-"; }

std::vector<std::vector<std::string>> Rows(const v1::GetMetricsReply& m) {
  const auto count = [](uint64_t n) { return HumanCount(static_cast<double>(n)); };
  return {
      {"wall clock", HumanDuration(Seconds(m.wall_seconds()))},
      {"version", absl::StrFormat("%d", m.version())},
      {"tokens", absl::StrFormat("%s (%s planned)", count(m.committed_tokens()), count(m.total_tokens()))},
      {"train loss", Loss(m.train_loss())},
      {"validation loss",
       absl::StrFormat("%s, best %s", Loss(m.validation_loss()), Loss(m.best_validation_loss()))},
      {"convergence",
       absl::StrFormat("%+.4g nats per token and million tokens", m.loss_slope_per_million_tokens())},
      {"throughput", HumanRate(m.tokens_per_second(), "tok")},
      {"compute utilisation",
       m.compute_utilisation() > 0 ? absl::StrFormat("%.1f %%", 100 * m.compute_utilisation()) : "-"},
      {"moved", absl::StrFormat("%s up, %s down", HumanBytes(m.push_bytes()), HumanBytes(m.pull_bytes()))},
      {"communication", absl::StrFormat("%.1f times fewer bytes than data-parallel (%s)",
                                        m.communication_reduction(), HumanBytes(m.data_parallel_bytes()))},
      {"round", HumanDuration(Seconds(m.round_seconds_mean()))},
      {"commit", HumanDuration(Seconds(m.commit_seconds_mean()))},
      {"workers", absl::StrFormat("%d", m.live_trainers())},
  };
}

absl::Status Show(const GlobalOptions& global) {
  ATOLL_ASSIGN_OR_RETURN(const v1::GetMetricsReply metrics, MakeAdminClient(global).GetMetrics());
  if (global.json) return PrintJson(metrics);
  for (const auto& row : Rows(metrics)) std::printf(" %-20s %s\n", row[0].c_str(), row[1].c_str());
  return absl::OkStatus();
}

struct ExportOptions {
  std::string format = "csv";
  std::string out;
};

absl::StatusOr<uint64_t> Copy(const GlobalOptions& global, MetricWriter& writer) {
  uint64_t points = 0;
  absl::Status written;
  const absl::Status read = MakeAdminClient(global).ExportMetrics([&](const v1::MetricPoint& point) {
    written = writer.Add(point);
    ++points;
    return written.ok();
  });
  ATOLL_RETURN_IF_ERROR(read);
  ATOLL_RETURN_IF_ERROR(written);
  ATOLL_RETURN_IF_ERROR(writer.Finish());
  return points;
}

std::unique_ptr<MetricWriter> StreamWriter(const std::string& format, std::ostream* out) {
  return format == "csv" ? CsvWriter(out) : JsonLinesWriter(out);
}

absl::StatusOr<uint64_t> CopyToFile(const GlobalOptions& global, const ExportOptions& options) {
  const auto partial = PartialFile::Create(options.out);
  if (!partial.ok()) {
    return absl::Status(partial.status().code(),
                        absl::StrFormat("--out %s: %s; --out - writes to standard output", options.out,
                                        std::string(partial.status().message())));
  }
  std::ofstream file((*partial)->partial(), std::ios::binary | std::ios::trunc);
  if (!file) return ErrnoToStatus(errno, "open " + (*partial)->partial());
  ATOLL_ASSIGN_OR_RETURN(const uint64_t points, Copy(global, *StreamWriter(options.format, &file)));
  file.close();
  if (!file) return absl::ResourceExhaustedError(options.out + " cannot be written: is the disk full?");
  ATOLL_RETURN_IF_ERROR((*partial)->Publish());
  return points;
}

absl::StatusOr<uint64_t> CopyToFolder(const GlobalOptions& global, const ExportOptions& options) {
  ATOLL_ASSIGN_OR_RETURN(const v1::GetStatusReply status, MakeAdminClient(global).GetStatus(0));
  ATOLL_ASSIGN_OR_RETURN(const auto writer, TensorBoardWriter(options.out, status.run_id()));
  return Copy(global, *writer);
}

absl::Status Export(const GlobalOptions& global, const ExportOptions& options) {
  if (options.out.empty() || options.out == "-") {
    if (options.format == "tensorboard") {
      return absl::InvalidArgumentError(
          "--format tensorboard writes a folder of event files: give --out FOLDER");
    }
    const EndWithReader end_with_reader;
    return Copy(global, *StreamWriter(options.format, &std::cout)).status();
  }
  const auto points =
      options.format == "tensorboard" ? CopyToFolder(global, options) : CopyToFile(global, options);
  ATOLL_RETURN_IF_ERROR(points.status());
  if (IsStream(options.out)) return absl::OkStatus();
  if (global.json) {
    PrintJson(nlohmann::ordered_json{{"points", *points}});
  } else {
    std::printf("wrote %llu points to %s\n", static_cast<unsigned long long>(*points), options.out.c_str());
  }
  return absl::OkStatus();
}

}  // namespace

void AddMetricsCommand(CLI::App& app, const GlobalOptions& global, Action& action) {
  CLI::App* metrics = app.add_subcommand("metrics", "Show the run's current metrics, or export all of them");
  metrics->require_subcommand(0, 1);
  auto options = std::make_shared<ExportOptions>();
  CLI::App* all = metrics->add_subcommand("export", "Export every metric point of the run, in order of time");
  all->add_option("--format", options->format, "Output format; tensorboard writes event files")
      ->capture_default_str()
      ->check(CLI::IsMember({"csv", "jsonl", "tensorboard"}));
  all->add_option("--out", options->out,
                  "Output file; - or none: standard output; with tensorboard: a folder")
      ->check(NotEmpty());
  all->callback(
      [&global, &action, options] { action = [&global, options] { return Export(global, *options); }; });
  SetHelp(*all, {.examples = {{"atollctl metrics export --out metrics.csv"},
                              {"atollctl metrics export --format jsonl | jq -c '[.name, .version, .value]'"},
                              {"atollctl metrics export --format tensorboard --out tb"}},
                 .exit_codes = {ExitCode::kUnavailable, ExitCode::kStorage, ExitCode::kRejected,
                                ExitCode::kBadFiles}});
  SetHelp(*metrics, {.examples = {{"atollctl metrics"}, {"atollctl metrics export --out metrics.csv"}},
                     .exit_codes = {ExitCode::kUnavailable, ExitCode::kStorage, ExitCode::kRejected,
                                    ExitCode::kBadFiles}});
  metrics->callback([metrics, &global, &action] {
    if (metrics->get_subcommands().empty()) action = [&global] { return Show(global); };
  });
}

}  // namespace atl
