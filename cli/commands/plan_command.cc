#include <cstdio>

#include "cli/commands/commands.h"
#include "cli/plan.h"
#include "cli/text.h"
#include "common/status.h"
#include "protos/config/run_config.h"

namespace atoll {
namespace {

struct PlanOptions {
  std::string file;
  uint32_t workers = 0;
  std::string bandwidth = "1Gbit/s";
  std::string coordinator_bandwidth;
  std::string latency = "50ms";
  double step_ms = 0;
  double evaluation_batch_ms = 0;
};

absl::Status Plan(const GlobalOptions& global, const PlanOptions& options) {
  ATOLL_ASSIGN_OR_RETURN(const v1::RunConfig config, LoadRunConfig(options.file));
  ATOLL_ASSIGN_OR_RETURN(const RunOptions run, ToRunOptions(config));
  PlanAssumptions assumptions;
  assumptions.workers = options.workers;
  ATOLL_ASSIGN_OR_RETURN(assumptions.bandwidth_bits_per_s, ParseBandwidth(options.bandwidth));
  if (!options.coordinator_bandwidth.empty()) {
    ATOLL_ASSIGN_OR_RETURN(assumptions.coordinator_bandwidth_bits_per_s,
                           ParseBandwidth(options.coordinator_bandwidth));
  }
  ATOLL_ASSIGN_OR_RETURN(assumptions.latency_s, ParseSpan(options.latency));
  assumptions.step_s = options.step_ms / 1000;
  assumptions.evaluation_batch_s = options.evaluation_batch_ms / 1000;
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
  CLI::App* plan = app.add_subcommand(
      "plan", "What a run will need and take, before it is started: memory, disk, bytes, time");
  auto options = std::make_shared<PlanOptions>();
  plan->add_option("CONFIG", options->file, "The run's YAML file")->required();
  plan->add_option("--workers", options->workers, "How many workers; default: run.workers")
      ->check(CLI::Range(1, 10000));
  plan->add_option("--bandwidth", options->bandwidth, "Of each worker, each way")->capture_default_str();
  plan->add_option("--coordinator-bandwidth", options->coordinator_bandwidth,
                   "Of the coordinator, which all workers share; default: as one worker's");
  plan->add_option("--latency", options->latency, "There and back")->capture_default_str();
  plan->add_option("--step-ms", options->step_ms,
                   "What one inner step takes on a worker; measure it with one")
      ->check(CLI::PositiveNumber);
  plan->add_option("--evaluation-batch-ms", options->evaluation_batch_ms,
                   "Duration of one batch of an evaluation; default: a third of an inner step's")
      ->check(CLI::PositiveNumber);
  plan->callback(
      [&global, &action, options] { action = [&global, options] { return Plan(global, *options); }; });
}

}  // namespace atoll
