// atoll-worker: reads the command line and runs one of worker/app's commands.
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_format.h"
#include "atoll/version.h"
#include "client/setup/member_flags.h"
#include "common/command_line/help.h"
#include "common/command_line/parse.h"
#include "common/exit_codes.h"
#include "common/log.h"
#include "common/process_setup.h"
#include "common/shutdown.h"
#include "core/rank_limits.h"
#include "protos/transport/grpc_log.h"
#include "worker/app/commands.h"
#include "worker/app/generate_flags.h"
#include "worker/island/supervisor.h"
#include "worker/torch/blas_kernels.h"
#include "worker/torch/rank_group.h"
#include "worker/torch/torch_replica.h"

namespace atl {
namespace {

const HelpText& ProgramHelp() {
  static const auto& text = *new HelpText{
      .examples = {{"atoll-worker --coordinator 127.0.0.1:7600 --name w0 --data tokens --state-dir state/w0",
                    "Train until the run is finished; run the same command again after a crash"},
                   {"atoll-worker --role evaluator --name eval --data tokens --state-dir state/eval",
                    "Evaluate published versions; no round waits for this process"},
                   {"atoll-worker --role evaluator --name eval --data tokens --state-dir s --task mmlu=test",
                    "The same, with a task of evaluation.tasks"},
                   {"atoll-worker --ranks 8 --device cuda --name rack0 --data tokens --state-dir state/rack0",
                    "Train as one worker on the eight GPUs of this host"},
                   {"atoll-worker generate --prompt \"Once \"",
                    "Write text with the current model, as atoll-model does"}},
      .notes =
          "Model, optimizer, data order and rounds come from the coordinator. While the coordinator is away, "
          "the worker waits and reconnects by itself. A worker that never got an answer exits after a minute "
          "of failures that look permanent, unless --wait-forever is given. A rank of an island (--island, "
          "torchrun) also exits with 75 when another rank is lost, and with 76 when the run asks for a "
          "restart: start all ranks again. On its host, only rank 0 serves --metrics-listen and keeps "
          "--ready-file."};
  return text;
}

void AddWorkerFlags(CLI::App& app, WorkerFlags& flags) {
  AddMemberFlags(app, flags.member);
  app.add_option("--data", flags.data, "Folder of token files, made by atoll-data; REQUIRED");
  app.add_option("--device", flags.device, "Device to compute on: auto, cpu, cuda or cuda:N")
      ->capture_default_str();
  app.add_option("--threads", flags.threads,
                 "Threads for computation; 0: LibTorch's choice. Give each process its share of the cores")
      ->capture_default_str()
      ->check(CLI::Range(0, 1024));
  app.add_flag(
      "--cuda-graph", flags.cuda_graph,
      "On a GPU: record the kernels of an inner step once, and start them as one piece. In blocking mode, "
      "without ranks");
  app.add_flag(
      "--encode-on-cpu", flags.encode_on_cpu,
      "On a GPU: encode pushes on the processor, which leaves the GPU 12 bytes or more per parameter");
  AddTaskFlags(app, flags.tasks);
}

void AddIslandFlags(CLI::App& app, IslandFlags& flags) {
  app.add_option(
         "--ranks", flags.ranks,
         "Train as one worker with this many processes on this host, each with a device of its own (or "
         "its share of --threads); they are started, watched and restarted together")
      ->check(CLI::Range(1U, kMaxRanks));
  app.add_option(
      "--island", flags.island,
      "HOST:PORT of rank 0, where the ranks of several hosts find each other; start one process per "
      "rank. torchrun's variables do the same");
  app.add_option("--rank", flags.rank, "Rank of this process, from 0; with --island");
  app.add_option("--world-size", flags.world_size, "Number of ranks; with --island");
  app.add_option(
         "--rank-timeout", flags.rank_timeout_s,
         "Seconds without a sign of life, or in one exchange of gradients, after which a rank counts as "
         "lost and all ranks start again")
      ->capture_default_str()
      ->check(CLI::Range(1.0, 86400.0));
  app.add_option("--max-restarts", flags.max_restarts,
                 "Restarts of all ranks in a row, after which --ranks gives up")
      ->capture_default_str()
      ->check(CLI::Range(0U, 1000000U));
}

/// Makes `atoll-worker --coordinator X generate` mean what `atoll-worker generate --coordinator X` means.
/// Throws CLI::ValidationError on an option before the subcommand that the subcommand does not have.
void TakeOverOptions(const CLI::App& app, CLI::App& subcommand) {
  for (const CLI::Option* given : app.get_options()) {
    const std::string name = given->get_name();
    if (given->count() == 0 || name == "--log-format" || name == "--log-level") continue;
    CLI::Option* const option = subcommand.get_option_no_throw(name);
    if (option == nullptr) throw CLI::ValidationError(name, "not an option of " + subcommand.get_name());
    if (option->count() > 0) continue;
    for (const std::string& result : given->results()) option->add_result(result);
    option->run_callback();
  }
}

std::optional<std::string> Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
}

int Supervise(const WorkerFlags& flags, char** argv, const Logger& log) {
  const absl::Status supported = CheckRankSupport();
  if (!supported.ok()) {
    log.Error(std::string(supported.message()));
    return ToInt(ExitCode::kUsage);
  }
  auto shutdown = Shutdown::Install();
  if (!shutdown.ok()) return ToInt(ExitCode::kInternal);
  const int code = SuperviseRanks({.ranks = flags.island.ranks,
                                   .max_restarts = flags.island.max_restarts,
                                   .arguments = argv,
                                   .environment = environ,
                                   .log = log},
                                  **shutdown);
  log.Flush();
  return code;
}

int Main(int argc, char** argv) {
  CLI::App app(
      "Train a copy of the model on this worker's data and exchange updates with the coordinator every H "
      "steps.",
      "atoll-worker");
  WorkerFlags worker;
  GenerateFlags generate;
  LogFlags log_flags;
  app.set_version_flag("--version", absl::StrFormat("atoll-worker %s (%s), LibTorch %s", kVersion,
                                                    kGitRevision, TorchVersion()));
  AddWorkerFlags(app, worker);
  AddIslandFlags(app, worker.island);
  AddLogFlags(app, log_flags);
  CLI::App* const generating = AddGenerateCommand(app, generate);
  SetHelp(app, ProgramHelp());
  const auto required = [&] {
    if (generating->parsed()) {
      TakeOverOptions(app, *generating);
      SettleGenerateFlags(*generating, generate);
    }
    TaskFilesOf(worker.tasks);
    if (generating->parsed() || (!worker.data.empty() && !worker.member.state_dir.empty())) return;
    throw CLI::RequiredError(worker.data.empty() ? "--data" : "--state-dir");
  };
  if (const auto code = ParseCommandLine(app, argc, argv, required)) return ToInt(*code);
  const auto log = MakeLogger(log_flags);
  if (!log.ok()) return ToInt(ExitCode::kUsage);
  RouteGrpcLog(log->With("component", "grpc"));
  if (generating->parsed()) {
    const ExitCode code = GenerateText(generate, *log);
    log->Flush();
    return ToInt(code);
  }
  const auto role = FindIslandRole(worker.island, Variable);
  if (!role.ok()) {
    log->Error(std::string(role.status().message()));
    return ToInt(ExitCode::kUsage);
  }
  if (role->supervises) return Supervise(worker, argv, *log);
  if (role->place.has_value()) return RunRank(worker, *role->place, *log);
  const WorkerOutcome outcome = RunWorker(worker, *log);
  log->Flush();
  // Everything of this life is gone by now, the lock of the state directory too. The program is looked up by
  // the kernel, so that an installation that was replaced meanwhile does not matter.
  if (outcome.restart) {
    execv("/proc/self/exe", argv);
    log->Error("cannot restart: the program cannot be executed again");
    return ToInt(ExitCode::kInternal);
  }
  return ToInt(outcome.code);
}

}  // namespace
}  // namespace atl

int main(int argc, char** argv) {
  atl::SetUpProcess();
  atl::RestartWithBestBlasKernels(std::getenv("OPENBLAS_CORETYPE"), argv);
  return atl::Main(argc, argv);
}
