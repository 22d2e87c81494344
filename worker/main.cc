// atoll-worker: reads the command line and runs one of worker/app's commands.
#include <unistd.h>

#include <cstdlib>
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
#include "protos/transport/grpc_log.h"
#include "protos/transport/security_flags.h"
#include "worker/app/commands.h"
#include "worker/torch/blas_kernels.h"
#include "worker/torch/torch_replica.h"

namespace atl {
namespace {

const HelpText& ProgramHelp() {
  static const auto& text = *new HelpText{
      .examples = {{"atoll-worker --coordinator 127.0.0.1:7600 --name w0 --data tokens --state-dir state/w0",
                    "Train until the run is finished; run the same command again after a crash"},
                   {"atoll-worker --role evaluator --name eval --data tokens --state-dir state/eval",
                    "Evaluate published versions; no round waits for this process"},
                   {"atoll-worker generate --prompt \"Once \"", "Write text with the current model"}},
      .notes =
          "Model, optimizer, data order and rounds come from the coordinator. While the coordinator is away, "
          "the worker waits and reconnects by itself. A worker that never got an answer exits after a minute "
          "of failures that look permanent, unless --wait-forever is given."};
  return text;
}

constexpr uint64_t kLargestSeed = uint64_t{1} << 53;  // what JSON keeps exactly

void AddWorkerFlags(CLI::App& app, WorkerFlags& flags) {
  AddMemberFlags(app, flags.member);
  app.add_option("--data", flags.data, "Folder of token files, made by atoll-data; REQUIRED");
  app.add_option("--device", flags.device, "Device to compute on: auto, cpu, cuda or cuda:N")
      ->capture_default_str();
  app.add_option("--threads", flags.threads,
                 "Threads for computation; 0: LibTorch's choice. Give each process its share of the cores")
      ->capture_default_str()
      ->check(CLI::Range(0, 1024));
}

void AddGenerateFlags(CLI::App& app, GenerateFlags& flags) {
  app.add_option("--coordinator", flags.coordinator,
                 "Address of the coordinator's data port (Env:ATOLL_COORDINATOR)")
      ->capture_default_str();
  CLI::Option* const model = app.add_option("--model", flags.model,
                                            "Read the parameters from this safetensors file, or this folder "
                                            "of Hugging Face's transformers (both of "
                                            "atollctl export)");
  CLI::Option* const config =
      app.add_option("--config", flags.config, "With --model: configuration file of the run (YAML)");
  model->needs(config);
  config->needs(model);
  app.add_option("--prompt", flags.prompt, "Text to continue");
  app.add_option("--tokens", flags.tokens, "Number of tokens to write")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000000));
  app.add_option("--temperature", flags.temperature, "Sampling temperature; 0: always the most likely token")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 100.0));
  app.add_option("--top-k", flags.top_k, "Sample among this many most likely tokens; 0: all")
      ->capture_default_str();
  app.add_option("--seed", flags.seed, "Seed of the sampling")
      ->capture_default_str()
      ->check(CLI::Range(uint64_t{0}, kLargestSeed).description("0 to 2^53"));
  AddClientSecurityFlags(app, flags.security);
  app.add_option("--device", flags.device, "Device to compute on: auto, cpu, cuda or cuda:N")
      ->capture_default_str();
  app.add_option("--threads", flags.threads, "Threads for computation; 0: LibTorch's choice")
      ->capture_default_str()
      ->check(CLI::Range(0, 1024));
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
  AddLogFlags(app, log_flags);
  CLI::App* generating = app.add_subcommand(
      "generate", "Write text with the published parameters of a live run or with an exported file");
  AddGenerateFlags(*generating, generate);
  SetHelp(app, ProgramHelp());
  SetHelp(
      *generating,
      {.examples = {{"atoll-worker generate --coordinator 127.0.0.1:7600 --prompt \"Once \" --tokens 200"},
                    {"atoll-worker generate --model model.safetensors --config run.yaml --prompt \"Once \""}},
       .exit_codes = {ExitCode::kUnavailable, ExitCode::kStorage, ExitCode::kRejected, ExitCode::kBadFiles}});
  const auto required = [&] {
    if (generating->parsed()) TakeOverOptions(app, *generating);
    if (generating->parsed() || (!worker.data.empty() && !worker.member.state_dir.empty())) return;
    throw CLI::RequiredError(worker.data.empty() ? "--data" : "--state-dir");
  };
  if (const auto code = ParseCommandLine(app, argc, argv, required)) return ToInt(*code);
  const auto log = MakeLogger(log_flags);
  if (!log.ok()) return ToInt(ExitCode::kUsage);
  RouteGrpcLog(log->With("component", "grpc"));
  WorkerOutcome outcome;
  if (generating->parsed()) {
    outcome.code = GenerateText(generate, *log);
  } else {
    outcome = RunWorker(worker, *log);
  }
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
