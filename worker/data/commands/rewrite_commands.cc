#include <memory>
#include <string>

#include "common/clock.h"
#include "common/command_line/help.h"
#include "common/command_line/parse.h"
#include "common/status.h"
#include "core/token_format.h"
#include "worker/data/commands/command.h"
#include "worker/data/commands/output.h"
#include "worker/data/rewrite.h"

namespace atl {
namespace {

constexpr char kSplitHelp[] =
    "Write a dataset folder as a new one, with shards of another size or with another held-out part";
constexpr char kMergeHelp[] =
    "Write several dataset folders of one tokenizer as a new one: their training texts one after the other, "
    "and "
    "what they hold out";
constexpr char kRewriteNotes[] =
    "The new shards have llm.c's layout, which modded-nanogpt reads too: uint16 tokens, or uint32 for a "
    "vocabulary above 65536. The folders that are read do not change.";

struct RewriteFlags {
  RewriteOptions options;
  double held_out = 0;
};

absl::Status RunRewrite(RewriteFlags& flags) {
  if (flags.held_out > 0) flags.options.held_out_share = flags.held_out;
  const SystemClock clock{};
  LazyBar bar("write", ProgressUnit::kCount, clock);
  ATOLL_ASSIGN_OR_RETURN(
      const DatasetDescription description,
      Rewrite(flags.options, [&](uint64_t done, uint64_t total) { bar.Update(done, total); }));
  bar.Finish();
  PrintDescription(flags.options.out, description);
  return absl::OkStatus();
}

void AddCommonOptions(CLI::App& command, RewriteFlags& flags) {
  command.add_option("--out", flags.options.out, "Dataset folder to create")->required()->check(NotEmpty());
  command
      .add_option("--shard-tokens", flags.options.tokens_per_file,
                  "Tokens of a training file; the last one has fewer")
      ->check(CLI::Range(uint64_t{1}, kMaxTokensPerFile))
      ->capture_default_str();
  command
      .add_option("--val-fraction", flags.held_out,
                  "Hold out this fraction of all text, at its end; default: what the folders hold out")
      ->check(CLI::Range(1e-6, 0.999999));
}

}  // namespace

DataCommand AddSplitCommand(CLI::App& app) {
  CLI::App* const split = app.add_subcommand("split", kSplitHelp);
  const auto flags = std::make_shared<RewriteFlags>();
  split->add_option("folder", flags->options.folders, "Dataset folder to read")->required()->expected(1);
  AddCommonOptions(*split, *flags);
  SetHelp(*split, {.examples = {{"atoll-data split data/web --out data/web-small --shard-tokens 100000000"},
                                {"atoll-data split data/web --out data/web-10 --val-fraction 0.1"}},
                   .exit_codes = {ExitCode::kStorage, ExitCode::kBadFiles},
                   .notes = kRewriteNotes});
  return {split, [flags] { return RunRewrite(*flags); }};
}

DataCommand AddMergeCommand(CLI::App& app) {
  CLI::App* const merge = app.add_subcommand("merge", kMergeHelp);
  const auto flags = std::make_shared<RewriteFlags>();
  merge->add_option("folders", flags->options.folders, "Dataset folders to read, in order")->required();
  AddCommonOptions(*merge, *flags);
  SetHelp(*merge, {.examples = {{"atoll-data merge data/book data/web --out data/all"}},
                   .exit_codes = {ExitCode::kStorage, ExitCode::kBadFiles},
                   .notes = kRewriteNotes});
  return {merge, [flags] { return RunRewrite(*flags); }};
}

}  // namespace atl
