#include <memory>
#include <string>
#include <vector>

#include "common/command_line/help.h"
#include "common/command_line/parse.h"
#include "common/status.h"
#include "core/mixture_order.h"
#include "worker/data/commands/command.h"
#include "worker/data/commands/output.h"
#include "worker/data/mix.h"

namespace atl {
namespace {

constexpr char kMixHelp[] =
    "Make a dataset folder that is a mixture of others: a run reads samples of each in the ratio of the "
    "weights, and repeats each at its own rate";
constexpr char kMixNotes[] =
    "Weights are relative: 0.7 and 0.3 are the same as 7 and 3. No token is copied; workers read the "
    "datasets where they are, so copy these to each machine too, at the same path from the mixture. The "
    "datasets keep their held-out texts, and an evaluation reads windows of them in the same ratio.";

struct MixFlags {
  std::vector<std::string> folders;
  std::string out;
};

/// The problem with a folder and its weight; empty if they can be such.
std::string WeightedFolderFault(const std::string& text) {
  const absl::StatusOr<WeightedFolder> folder = ParseWeightedFolder(text);
  if (!folder.ok()) return std::string(folder.status().message());
  const std::vector<std::string> weight = {folder->weight};
  return std::string(WholeWeights(weight).status().message());
}

absl::Status RunMix(const MixFlags& flags) {
  std::vector<WeightedFolder> folders;
  for (const std::string& text : flags.folders) {
    ATOLL_ASSIGN_OR_RETURN(folders.emplace_back(), ParseWeightedFolder(text));
  }
  ATOLL_ASSIGN_OR_RETURN(const MixtureDescription mixture, Mix(folders, flags.out));
  PrintMixture(flags.out, mixture);
  return absl::OkStatus();
}

}  // namespace

DataCommand AddMixCommand(CLI::App& app) {
  CLI::App* const mix = app.add_subcommand("mix", kMixHelp);
  const auto flags = std::make_shared<MixFlags>();
  mix->add_option("folders", flags->folders, "Dataset folders with their weights, each as FOLDER=WEIGHT")
      ->required()
      ->check(WeightedFolderFault);
  mix->add_option("--out", flags->out, "Folder to create")->required()->check(NotEmpty());
  SetHelp(*mix, {.examples = {{"atoll-data mix --out data/mix data/web=0.7 data/code=0.3"}},
                 .exit_codes = {ExitCode::kStorage, ExitCode::kBadFiles},
                 .notes = kMixNotes});
  return {mix, [flags] { return RunMix(*flags); }};
}

}  // namespace atl
