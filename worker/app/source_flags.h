#ifndef ATOLL_WORKER_APP_SOURCE_FLAGS_H_
#define ATOLL_WORKER_APP_SOURCE_FLAGS_H_

#include "CLI/CLI.hpp"
#include "worker/app/loaded_model.h"

// Options that say which model a command reads, and where it computes.

namespace atl {

/// --coordinator and --admin. `inherited`: the program's own option --coordinator, whose value counts here
/// too (worker/main.cc), has the environment variable.
void AddAddresses(CLI::App& app, ModelSource& source, bool inherited);

/// Certificates and tokens, --device and --threads.
void AddComputation(CLI::App& app, ModelSource& source);

/// The options of one model: those above, --version, --checkpoint, --model and --config.
void AddSource(CLI::App& app, ModelSource& source, bool inherited);

/// --tokenizer and --tokenizer-pattern. Returns the first.
CLI::Option* AddTokenizer(CLI::App& app, std::string& tokenizer, std::string& pattern);

/// Once the command was parsed: which port the addresses mean. Throws CLI::ValidationError for addresses that
/// could be those of two runs.
void SettleSource(const CLI::App& command, ModelSource& source);

}  // namespace atl

#endif  // ATOLL_WORKER_APP_SOURCE_FLAGS_H_
