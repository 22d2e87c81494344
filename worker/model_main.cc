// atoll-model: computes with a model that is not being trained here.
#include <unistd.h>

#include <cstdlib>

#include "CLI/CLI.hpp"
#include "absl/strings/str_format.h"
#include "atoll/version.h"
#include "common/command_line/help.h"
#include "common/command_line/parse.h"
#include "common/exit_codes.h"
#include "common/log.h"
#include "common/process_setup.h"
#include "protos/transport/grpc_log.h"
#include "worker/app/commands.h"
#include "worker/app/eval/eval_flags.h"
#include "worker/app/generate_flags.h"
#include "worker/app/serve/serve_flags.h"
#include "worker/torch/blas_kernels.h"
#include "worker/torch/torch_replica.h"

namespace atl {
namespace {

int Main(int argc, char** argv) {
  CLI::App app("Write text with the model of a run or with an exported one, measure models, or serve one.",
               "atoll-model");
  GenerateFlags generate;
  EvalFlags eval;
  ServeFlags serve;
  LogFlags log_flags;
  app.set_version_flag("--version", absl::StrFormat("atoll-model %s (%s), LibTorch %s", kVersion,
                                                    kGitRevision, TorchVersion()));
  AddLogFlags(app, log_flags);
  const CLI::App* const generating = AddGenerateCommand(app, generate);
  const CLI::App* const evaluating = AddEvalCommand(app, eval);
  const CLI::App* const serving = AddServeCommand(app, serve);
  app.require_subcommand(1);
  SetHelp(app, {.examples = {{"atoll-model generate --prompt \"Once \"",
                              "Write text with the current model of the run on this machine"},
                             {"atoll-model eval --model trained --data tokens", "Measure an exported model"},
                             {"atoll-model serve --model trained", "Serve it on 127.0.0.1:8000"}},
                .notes = "Nothing that this program does changes a run."});
  const auto settle = [&] {
    if (generating->parsed()) SettleGenerateFlags(*generating, generate);
    if (evaluating->parsed()) SettleEvalFlags(*evaluating, eval);
    if (serving->parsed()) SettleServeFlags(*serving, serve);
  };
  if (const auto code = ParseCommandLine(app, argc, argv, settle)) return ToInt(*code);
  const auto log = MakeLogger(log_flags);
  if (!log.ok()) return ToInt(ExitCode::kUsage);
  RouteGrpcLog(log->With("component", "grpc"));
  eval.progress = ProgressStyleFor(STDERR_FILENO, std::getenv("TERM"));
  ExitCode code = ExitCode::kOk;
  if (generating->parsed()) code = GenerateText(generate, *log);
  if (evaluating->parsed()) code = EvaluateModels(eval, *log);
  if (serving->parsed()) code = ServeModel(serve, *log);
  log->Flush();
  return ToInt(code);
}

}  // namespace
}  // namespace atl

int main(int argc, char** argv) {
  atl::SetUpProcess();
  atl::RestartWithBestBlasKernels(std::getenv("OPENBLAS_CORETYPE"), argv);
  return atl::Main(argc, argv);
}
