#include "worker/app/loaded_model.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "client/rpc/channel.h"
#include "client/rpc/grpc_connection.h"
#include "client/rpc/stored_reader.h"
#include "client/setup/setup_error.h"
#include "client/sync/load_published.h"
#include "client/sync/rejection.h"
#include "common/clock.h"
#include "common/digest.h"
#include "common/file.h"
#include "common/status.h"
#include "core/hf/config_file.h"
#include "core/hf/model_of_config.h"
#include "core/manifest.h"
#include "core/model_shape.h"
#include "protos/config/run_config.h"
#include "storage/weights/model_files.h"
#include "worker/app/load_safetensors.h"

namespace atl {
namespace {

using CheckTokenizer = std::function<absl::Status(const std::string&)>;

/// First of all: what else is wrong with such a run is no news.
absl::Status CheckKnown(const RunOptions& run) {
  if (run.model.external() != nullptr) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "%s: only the workers of this run know its model, so atoll-model cannot build it: export the "
        "parameters (`atollctl export --out model.safetensors`), load them where the model is, and use it "
        "there",
        ShapeOf(run.model)->section()));
  }
  return absl::OkStatus();
}

absl::StatusOr<LoadedModel> Build(const ModelSource& source, const RunOptions& run) {
  ATOLL_RETURN_IF_ERROR(CheckKnown(run));
  TorchReplicaOptions options;
  options.run = run;
  options.device = source.device;
  options.threads = source.threads;
  if (source.exact) options.run.inner.precision = Precision::kFp32;
  LoadedModel model;
  ATOLL_ASSIGN_OR_RETURN(model.replica, CreateTorchReplica(options));
  model.options = run.model;
  model.tokenizer = run.data.tokenizer;
  return model;
}

/// The run of a folder of transformers: its model, and nothing else.
absl::StatusOr<RunOptions> RunOfConfigFile(const std::string& folder) {
  ATOLL_ASSIGN_OR_RETURN(const ModelFiles files, ModelFiles::Open(folder));
  RunOptions run;
  run.inner.batch = 1;
  ATOLL_ASSIGN_OR_RETURN(run.model, ModelOfHfConfig(files.config()->text, files.config()->path));
  return run;
}

absl::StatusOr<RunOptions> RunOfFolder(const ModelSource& source) {
  if (!FileExists(source.files)) {
    return absl::NotFoundError(absl::StrFormat("--model %s: there is no such file or folder", source.files));
  }
  if (!IsModelFolder(source.files)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "--model %s: a safetensors file does not say how many heads its model has; give the run's "
        "configuration too (--config), or a folder with config.json (atollctl export --format hf)",
        source.files));
  }
  auto run = RunOfConfigFile(source.files);
  if (!run.ok()) return WithExitCode(run.status(), ExitCode::kBadFiles);
  return run;
}

absl::StatusOr<RunOptions> RunOfFile(const ModelSource& source) {
  if (source.config.empty()) return RunOfFolder(source);
  ATOLL_ASSIGN_OR_RETURN(const v1::RunConfig config, LoadRunConfig(source.config));
  return ToRunOptions(config);
}

/// What the first file that knows it says.
void ReadTokenIds(const std::string& folder, LoadedModel& model) {
  for (const char* const name : {"generation_config.json", "config.json"}) {
    const auto text = ReadFile(JoinPath(folder, name), kMaxHfConfigBytes);
    if (!text.ok()) continue;
    const HfTokenIds ids = TokenIdsOf(*text, model.options.vocabulary());
    if (model.endings.empty()) model.endings.assign(ids.ends.begin(), ids.ends.end());
    if (!model.begin && ids.begin) model.begin = static_cast<TokenId>(*ids.begin);
  }
}

absl::StatusOr<LoadedModel> FromFiles(const ModelSource& source, const CheckTokenizer& check) {
  ATOLL_ASSIGN_OR_RETURN(const RunOptions run, RunOfFile(source));
  ATOLL_RETURN_IF_ERROR(check(run.data.tokenizer));
  ATOLL_ASSIGN_OR_RETURN(LoadedModel model, Build(source, run));
  ATOLL_RETURN_IF_ERROR(
      WithExitCode(LoadSafetensors(source.files, LayoutOf(run.model, *model.replica), *model.replica),
                   ExitCode::kBadFiles));
  if (IsModelFolder(source.files)) ReadTokenIds(source.files, model);
  return model;
}

absl::StatusOr<std::shared_ptr<ChannelSecurity>> SecurityFor(const ModelSource& source,
                                                             const std::string& address, const Clock* clock,
                                                             const Logger& log) {
  ATOLL_RETURN_IF_ERROR(CheckAddress(address));
  ATOLL_ASSIGN_OR_RETURN(auto security, ChannelSecurity::Create(source.security, clock, log));
  ATOLL_RETURN_IF_ERROR(security->CheckTarget(address));
  return security;
}

/// The parameters of a version or of a checkpoint.
absl::StatusOr<LoadedModel> FromStored(const ModelSource& source, const CheckTokenizer& check,
                                       const Logger& log) {
  const SystemClock clock{};
  ATOLL_ASSIGN_OR_RETURN(const auto security, SecurityFor(source, source.admin, &clock, log));
  LoadedModel model;
  const auto build = [&](const RunOptions& run) {
    ATOLL_RETURN_IF_ERROR(CheckKnown(run));
    ATOLL_RETURN_IF_ERROR(check(run.data.tokenizer));
    ATOLL_ASSIGN_OR_RETURN(model, Build(source, run));
    return absl::OkStatus();
  };
  ATOLL_ASSIGN_OR_RETURN(const StoredParameters stored,
                         ReadStoredParameters(source.admin, security, source.stored, build));
  if (ManifestHash(stored.manifest) != ManifestHash(model.replica->manifest())) {
    return absl::FailedPreconditionError(
        "the run's model is another one than this program builds of the run's configuration: " +
        DifferenceFromRun(stored.manifest, model.replica->manifest()));
  }
  for (size_t f = 0; f < stored.layouts.size(); ++f) {
    ATOLL_RETURN_IF_ERROR(model.replica->WriteFragment(stored.layouts[f], stored.parameters[f]));
  }
  return model;
}

absl::StatusOr<LoadedModel> FromRun(const ModelSource& source, const CheckTokenizer& check,
                                    const Logger& log) {
  const SystemClock clock{};
  ATOLL_ASSIGN_OR_RETURN(const auto security, SecurityFor(source, source.coordinator, &clock, log));
  const GrpcConnectionOptions options = {.address = source.coordinator, .security = security};
  GrpcConnection connection(options, MakeChannel({.address = source.coordinator, .security = security}),
                            &clock);
  JoinCall join;
  join.worker = "observer-" + ToHex(RandomBytes(4));
  join.secret = RandomBytes(32);
  join.role = WorkerRole::kObserver;
  ATOLL_ASSIGN_OR_RETURN(const JoinedRun info, connection.Join(join));
  const auto load = [&]() -> absl::StatusOr<LoadedModel> {
    ATOLL_RETURN_IF_ERROR(CheckKnown(info.run));
    ATOLL_RETURN_IF_ERROR(check(info.run.data.tokenizer));
    ATOLL_ASSIGN_OR_RETURN(LoadedModel model, Build(source, info.run));
    ATOLL_RETURN_IF_ERROR(LoadPublished(connection, info, *model.replica).status());
    return model;
  };
  auto model = load();
  connection.Leave(info.member, "done reading").IgnoreError();
  return model;
}

}  // namespace

absl::StatusOr<LoadedModel> LoadModel(const ModelSource& source, const CheckTokenizer& check,
                                      const Logger& log) {
  if (!source.files.empty()) return FromFiles(source, check);
  return source.through_admin ? FromStored(source, check, log) : FromRun(source, check, log);
}

ExitCode ModelExitCode(const absl::Status& status, bool files) {
  return GivenExitCode(status).value_or(files ? LocalExitCode(status) : ExitCodeOf(status));
}

}  // namespace atl
