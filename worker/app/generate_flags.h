#ifndef ATOLL_WORKER_APP_GENERATE_FLAGS_H_
#define ATOLL_WORKER_APP_GENERATE_FLAGS_H_

#include "CLI/CLI.hpp"
#include "worker/app/commands.h"

namespace atl {

/// Adds the command `generate` to a program, with its options and its help. `flags` outlives `app`. After the
/// program's own options.
CLI::App* AddGenerateCommand(CLI::App& app, GenerateFlags& flags);
/// Once the command was parsed: which port the options mean. Throws CLI::ValidationError for addresses that
/// could be those of two runs.
void SettleGenerateFlags(const CLI::App& command, GenerateFlags& flags);

}  // namespace atl

#endif  // ATOLL_WORKER_APP_GENERATE_FLAGS_H_
