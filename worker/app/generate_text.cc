#include <cstdio>
#include <memory>
#include <vector>

#include "absl/strings/str_format.h"
#include "client/rpc/channel.h"
#include "client/rpc/grpc_connection.h"
#include "client/sync/load_published.h"
#include "client/sync/rejection.h"
#include "common/digest.h"
#include "common/status.h"
#include "protos/config/run_config.h"
#include "worker/app/commands.h"
#include "worker/app/load_safetensors.h"
#include "worker/app/write_output.h"
#include "worker/data/tokenizer.h"
#include "worker/torch/torch_replica.h"

namespace atl {
namespace {

absl::Status CheckKnown(const ModelOptions& model) {
  if (model.external() == nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "model.external: only the workers of this run know its model, so generate cannot build it: export the "
      "parameters (`atollctl export --out model.safetensors`), load them where the model is, and generate "
      "there");
}

absl::StatusOr<std::unique_ptr<TorchReplica>> MakeModel(const GenerateFlags& flags, const RunOptions& run) {
  ATOLL_RETURN_IF_ERROR(CheckKnown(run.model));
  TorchReplicaOptions options;
  options.run = run;
  options.device = flags.device;
  options.threads = flags.threads;
  return CreateTorchReplica(options);
}

/// The run's tokenizer, before anything is pulled for it.
absl::StatusOr<std::unique_ptr<Tokenizer>> TokenizerOf(const RunOptions& run) {
  auto tokenizer = MakeTokenizer(run.data.tokenizer);
  if (tokenizer.ok()) return tokenizer;
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s, so generate cannot turn the prompt into tokens: export the model (`atollctl export --out "
      "model.safetensors`), load it where that tokenizer is, and generate there",
      std::string(tokenizer.status().message())));
}

absl::Status Write(const GenerateFlags& flags, const RunOptions& run, TorchReplica& model) {
  ATOLL_ASSIGN_OR_RETURN(const auto tokenizer, TokenizerOf(run));
  std::vector<TokenId> prompt;
  tokenizer->Encode(flags.prompt, prompt);
  const SamplingOptions sampling = {
      .temperature = flags.temperature, .top_k = flags.top_k, .seed = flags.seed};
  std::vector<TokenId> tokens;
  ATOLL_RETURN_IF_ERROR(
      model.Generate(prompt, {.tokens = flags.tokens, .sampling = sampling}, [&](TokenId token) {
        tokens.push_back(token);
        return true;
      }));
  return WriteOutput(flags.prompt + tokenizer->Decode(tokens) + "\n", stdout);
}

absl::Status GenerateFromFile(const GenerateFlags& flags) {
  ATOLL_ASSIGN_OR_RETURN(const v1::RunConfig config, LoadRunConfig(flags.config));
  ATOLL_ASSIGN_OR_RETURN(const RunOptions run, ToRunOptions(config));
  ATOLL_RETURN_IF_ERROR(CheckKnown(run.model));
  ATOLL_RETURN_IF_ERROR(TokenizerOf(run).status());
  ATOLL_ASSIGN_OR_RETURN(const auto model, MakeModel(flags, run));
  ATOLL_RETURN_IF_ERROR(LoadSafetensors(flags.model, LayoutOf(run.model, *model), *model));
  return Write(flags, run, *model);
}

absl::Status GenerateFromRun(const GenerateFlags& flags, const Logger& log) {
  ATOLL_RETURN_IF_ERROR(CheckAddress(flags.coordinator));
  const SystemClock clock{};
  ATOLL_ASSIGN_OR_RETURN(const auto security, ChannelSecurity::Create(flags.security, &clock, log));
  ATOLL_RETURN_IF_ERROR(security->CheckTarget(flags.coordinator));
  GrpcConnection connection({.address = flags.coordinator, .security = security},
                            MakeChannel({.address = flags.coordinator, .security = security}), &clock);
  JoinCall join;
  join.worker = "observer-" + ToHex(RandomBytes(4));
  join.secret = RandomBytes(32);
  join.role = WorkerRole::kObserver;
  ATOLL_ASSIGN_OR_RETURN(const JoinedRun info, connection.Join(join));
  auto model = MakeModel(flags, info.run);
  const absl::Status loaded = model.ok() ? LoadPublished(connection, info, **model).status() : model.status();
  connection.Leave(info.member, "done reading").IgnoreError();
  ATOLL_RETURN_IF_ERROR(loaded);
  return Write(flags, info.run, **model);
}

}  // namespace

ExitCode GenerateText(const GenerateFlags& flags, const Logger& log) {
  const absl::Status status = flags.model.empty() ? GenerateFromRun(flags, log) : GenerateFromFile(flags);
  if (status.ok()) return ExitCode::kOk;
  log.Error(std::string(status.message()));
  return flags.model.empty() ? ExitCodeOf(status) : LocalExitCode(status);
}

}  // namespace atl
