#include <cstdio>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/shutdown.h"
#include "common/status.h"
#include "common/token_source.h"
#include "worker/app/model_tokenizer.h"
#include "worker/app/serve/serve_flags.h"
#include "worker/app/write_output.h"

namespace atl {
namespace {

std::string NameOf(const ServeFlags& flags) {
  if (!flags.name.empty()) return flags.name;
  std::string path = flags.source.files;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  const std::string name = path.substr(path.rfind('/') + 1);  // npos + 1 is 0
  return name.empty() ? "atoll" : name;
}

absl::StatusOr<std::unique_ptr<Completer>> MakeCompleter(const ServeFlags& flags, const Logger& log) {
  std::unique_ptr<Tokenizer> tokenizer;
  const auto find_tokenizer = [&](const std::string& of_run) -> absl::Status {
    auto found = TokenizerOfModel({.name = flags.tokenizer,
                                   .pattern = flags.tokenizer_pattern,
                                   .of_run = of_run,
                                   .files = flags.source.files});
    if (found.ok()) {
      tokenizer = *std::move(found);
      WarnOfOtherTokenizer(*tokenizer, {.of_run = of_run, .files = flags.source.files}, log);
      return absl::OkStatus();
    }
    if (!flags.tokenizer.empty() || !absl::IsFailedPrecondition(found.status())) return found.status();
    log.Warning(
        absl::StrCat(std::string(found.status().message()),
                     ", so prompts must be token numbers and answers have no text; give --tokenizer"));
    return absl::OkStatus();
  };
  ModelSource source = flags.source;
  source.exact = true;
  ATOLL_ASSIGN_OR_RETURN(LoadedModel model, LoadModel(source, find_tokenizer, log));
  return std::make_unique<Completer>(std::move(model), std::move(tokenizer));
}

absl::Status Serve(const ServeFlags& flags, const Logger& log) {
  ATOLL_RETURN_IF_ERROR(
      NameOption(CompletionServer::CheckAddress(flags.server), "--listen", flags.server.address));
  const SystemClock clock{};
  std::unique_ptr<TokenSource> key;
  if (!flags.key_file.empty()) {
    ATOLL_ASSIGN_OR_RETURN(key, TokenSource::Open(flags.key_file, &clock));
  }
  ATOLL_ASSIGN_OR_RETURN(const auto shutdown, Shutdown::Install());
  ATOLL_ASSIGN_OR_RETURN(const auto completer, MakeCompleter(flags, log));
  const std::string name = NameOf(flags);
  CompletionApi api({.model = name, .key = key.get(), .time_limit = Seconds(flags.timeout_s)},
                    completer.get(), &clock);
  ATOLL_ASSIGN_OR_RETURN(const auto server, CompletionServer::Start(flags.server, &api, &clock));
  ATOLL_RETURN_IF_ERROR(WriteOutput(absl::StrCat("serving ", name, " on ", server->url(), "/v1\n"), stdout));
  shutdown->Wait();
  log.Info("stopping");
  server->Shutdown();
  return absl::OkStatus();
}

}  // namespace

ExitCode ServeModel(const ServeFlags& flags, const Logger& log) {
  const absl::Status status = Serve(flags, log);
  if (status.ok()) return ExitCode::kOk;
  log.Error(std::string(status.message()));
  return ModelExitCode(status, !flags.source.files.empty());
}

}  // namespace atl
