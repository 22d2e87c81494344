#include <cstdio>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_format.h"
#include "atoll/version.h"
#include "common/command_line/help.h"
#include "common/command_line/parse.h"
#include "common/exit_codes.h"
#include "common/process_setup.h"
#include "common/standard_output.h"
#include "worker/data/commands/command.h"

namespace atl {
namespace {

// Errors here are about files, unless the disk failed.
ExitCode ExitCodeFor(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return ExitCode::kOk;
    case absl::StatusCode::kResourceExhausted:
      return ExitCode::kStorage;
    case absl::StatusCode::kInternal:
      return ExitCode::kInternal;
    case absl::StatusCode::kAlreadyExists:  // the folder already holds a dataset: probably a wrong name
      return ExitCode::kUsage;
    default:
      return ExitCode::kBadFiles;
  }
}

int Main(int argc, char** argv) {
  CLI::App app("Prepare token files for training.", "atoll-data");
  app.set_version_flag(
      "--version", absl::StrFormat("atoll-data %s (%s)", std::string(kVersion), std::string(kGitRevision)));
  app.require_subcommand(1);
  const std::vector<DataCommand> commands = {
      AddTokenizeCommand(app), AddAdoptCommand(app), AddInspectCommand(app), AddDecodeCommand(app),
      AddSplitCommand(app),    AddMergeCommand(app), AddMixCommand(app),     AddOrderCommand(app)};
  SetHelp(app, {.examples = {{"atoll-data tokenize --tokenizer bytes --out data/book book.txt"},
                             {"atoll-data adopt fineweb10B --tokenizer gpt2 --vocabulary 50257"},
                             {"atoll-data inspect data/book"}}});
  if (const auto code = ParseCommandLine(app, argc, argv)) return ToInt(*code);
  absl::Status status;
  for (const DataCommand& command : commands) {
    if (command.app->parsed()) status = command.run();
  }
  status.Update(FlushStandardOutput());
  if (!status.ok())
    std::fprintf(stderr, "atoll-data: %s\n", static_cast<std::string>(status.message()).c_str());
  return ToInt(ExitCodeFor(status));
}

}  // namespace
}  // namespace atl

int main(int argc, char** argv) {
  atl::SetUpProcess();
  return atl::Main(argc, argv);
}
