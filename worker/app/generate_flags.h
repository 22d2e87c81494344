#ifndef ATOLL_WORKER_APP_GENERATE_FLAGS_H_
#define ATOLL_WORKER_APP_GENERATE_FLAGS_H_

#include "CLI/CLI.hpp"
#include "worker/app/commands.h"

namespace atl {

/// Adds the command `generate` to a program, with its options and its help. `flags` outlives `app`.
CLI::App* AddGenerateCommand(CLI::App& app, GenerateFlags& flags);

}  // namespace atl

#endif  // ATOLL_WORKER_APP_GENERATE_FLAGS_H_
