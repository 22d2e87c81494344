#ifndef ATOLL_WORKER_APP_SERVE_SERVE_FLAGS_H_
#define ATOLL_WORKER_APP_SERVE_SERVE_FLAGS_H_

#include <string>

#include "CLI/CLI.hpp"
#include "common/exit_codes.h"
#include "common/log.h"
#include "worker/app/loaded_model.h"
#include "worker/app/serve/completion_server.h"

namespace atl {

struct ServeFlags {
  ModelSource source;
  std::string tokenizer;  // a name or a file; empty: the run's, or that in the model's folder
  std::string tokenizer_pattern;
  std::string name;      // of the model; empty: of its file, or "atoll"
  std::string key_file;  // empty: none
  CompletionServerOptions server;
  double timeout_s = 300;
};

/// Adds the command `serve`. `flags` outlives `app`.
CLI::App* AddServeCommand(CLI::App& app, ServeFlags& flags);
/// Once it was parsed. Throws CLI::ValidationError.
void SettleServeFlags(const CLI::App& command, ServeFlags& flags);

/// Serves until a signal comes.
ExitCode ServeModel(const ServeFlags& flags, const Logger& log);

}  // namespace atl

#endif  // ATOLL_WORKER_APP_SERVE_SERVE_FLAGS_H_
