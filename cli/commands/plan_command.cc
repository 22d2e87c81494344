#include <cstdio>

#include "cli/commands/commands.h"
#include "cli/commands/config_file.h"
#include "cli/doctor/tokens.h"
#include "cli/plan.h"
#include "cli/text.h"
#include "common/command_line/help.h"
#include "common/command_line/parse.h"
#include "common/status.h"
#include "core/manifest.h"
#include "core/model_check.h"
#include "core/rank_limits.h"
#include "protos/config/run_config.h"

namespace atl {
namespace {

const CLI::Range kMilliseconds(0.001, 86.4e6);

struct PlanOptions {
  std::string file;
  uint32_t workers = 0;
  uint32_t ranks = 1;
  uint64_t parameters = 0;
  std::string bandwidth = "1Gbit/s";
  std::string coordinator_bandwidth;
  std::string latency = "50ms";
  double step_ms = 0;
  double evaluation_batch_ms = 0;
  std::string data;
};

absl::Status Plan(const GlobalOptions& global, const PlanOptions& options) {
  ATOLL_ASSIGN_OR_RETURN(const v1::RunConfig config, LoadConfigFile(options.file));
  ATOLL_ASSIGN_OR_RETURN(const RunOptions run, ToRunOptions(config));
  ATOLL_RETURN_IF_ERROR(CheckModel(run));
  PlanAssumptions assumptions;
  assumptions.workers = options.workers;
  assumptions.ranks = options.ranks;
  assumptions.parameters = options.parameters;
  ATOLL_ASSIGN_OR_RETURN(assumptions.bandwidth_bits_per_s, ParseBandwidth(options.bandwidth));
  if (!options.coordinator_bandwidth.empty()) {
    ATOLL_ASSIGN_OR_RETURN(assumptions.coordinator_bandwidth_bits_per_s,
                           ParseBandwidth(options.coordinator_bandwidth));
  }
  ATOLL_ASSIGN_OR_RETURN(assumptions.latency_s, ParseSpan(options.latency));
  assumptions.step_s = options.step_ms / 1000;
  assumptions.evaluation_batch_s = options.evaluation_batch_ms / 1000;
  if (!options.data.empty()) {
    ATOLL_ASSIGN_OR_RETURN(assumptions.texts, TextsOf(options.data));
  }
  ATOLL_ASSIGN_OR_RETURN(const RunPlan plan, MakePlan(run, assumptions));
  if (global.json) {
    std::printf("%s\n", PlanToJson(plan).c_str());
  } else {
    PrintLines(RenderPlan(plan));
  }
  return absl::OkStatus();
}

}  // namespace

void AddPlanCommand(CLI::App& app, const GlobalOptions& global, Action& action) {
  CLI::App* plan =
      app.add_subcommand("plan", "Estimate what a run needs: memory, disk, bytes per round, time");
  auto options = std::make_shared<PlanOptions>();
  plan->add_option("CONFIG", options->file, "Configuration file of the run (YAML)")->required();
  plan->add_option("--workers", options->workers,
                   "Number of workers; default: run.workers divided by --ranks")
      ->check(CLI::Range(1, 10000));
  plan->add_option("--ranks", options->ranks,
                   "Number of ranks of each worker, which then is an island (atoll-worker --ranks)")
      ->capture_default_str()
      ->check(CLI::Range(1U, kMaxRanks));
  plan->add_option("--parameters", options->parameters,
                   "Number of parameters of an external model; default: model.external.parameters")
      ->check(CLI::Range(uint64_t{1}, kMaxRunElements));
  plan->add_option("--bandwidth", options->bandwidth, "Bandwidth of each worker, in each direction")
      ->capture_default_str();
  plan->add_option("--coordinator-bandwidth", options->coordinator_bandwidth,
                   "Bandwidth of the coordinator, which all workers share; default: that of one worker");
  plan->add_option("--latency", options->latency, "Round-trip time between a worker and the coordinator")
      ->capture_default_str();
  plan->add_option("--step-ms", options->step_ms,
                   "Duration of one inner step on a worker with its ranks, measured")
      ->check(kMilliseconds);
  plan->add_option("--evaluation-batch-ms", options->evaluation_batch_ms,
                   "Duration of one batch of an evaluation; default: a third of an inner step's")
      ->check(kMilliseconds);
  plan->add_option("--data", options->data,
                   "Folder of token files, to see how many times the run reads its text")
      ->check(NotEmpty());
  plan->callback(
      [&global, &action, options] { action = [&global, options] { return Plan(global, *options); }; });
  SetHelp(*plan,
          {.examples = {{"atollctl plan run.yaml --bandwidth 100Mbit/s --latency 80ms --step-ms 350"},
                        {"atollctl plan run.yaml --data tokens", "With the passes over the text"},
                        {"atollctl plan run.yaml --workers 2 --ranks 8", "With two islands of 8 GPUs"}},
           .exit_codes = {ExitCode::kBadFiles}});
}

}  // namespace atl
