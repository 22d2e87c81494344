#ifndef ATOLL_WORKER_DATA_COMMANDS_COMMAND_H_
#define ATOLL_WORKER_DATA_COMMANDS_COMMAND_H_

#include <functional>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"

namespace atl {

/// A subcommand of atoll-data: its options, and what it does when they are parsed.
struct DataCommand {
  CLI::App* app;
  std::function<absl::Status()> run;
};

DataCommand AddTokenizeCommand(CLI::App& app);
DataCommand AddAdoptCommand(CLI::App& app);
DataCommand AddInspectCommand(CLI::App& app);
DataCommand AddDecodeCommand(CLI::App& app);
DataCommand AddSplitCommand(CLI::App& app);
DataCommand AddMergeCommand(CLI::App& app);
DataCommand AddMixCommand(CLI::App& app);
DataCommand AddOrderCommand(CLI::App& app);

}  // namespace atl

#endif  // ATOLL_WORKER_DATA_COMMANDS_COMMAND_H_
