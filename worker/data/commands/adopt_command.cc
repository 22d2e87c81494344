#include <memory>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "common/clock.h"
#include "common/command_line/help.h"
#include "common/status.h"
#include "worker/data/adopt.h"
#include "worker/data/commands/command.h"
#include "worker/data/commands/output.h"

namespace atl {
namespace {

constexpr char kAdoptHelp[] =
    "Make an existing folder of token shards (llm.c, modded-nanogpt, Megatron, datatrove) a dataset folder: "
    "write its meta.json and change no shard";

absl::Status RunAdopt(const AdoptOptions& options) {
  const SystemClock clock{};
  LazyBar bar("adopt", ProgressUnit::kBytes, clock);
  ATOLL_ASSIGN_OR_RETURN(const DatasetDescription description,
                         Adopt(options, [&](uint64_t done, uint64_t total) { bar.Update(done, total); }));
  bar.Finish();
  PrintDescription(options.folder, description);
  return absl::OkStatus();
}

/// The problem with a vocabulary; empty if it is valid.
std::string VocabularyFault(const std::string& text) {
  uint64_t tokens = 0;
  if (absl::SimpleAtoi(text, &tokens) && tokens >= 1 && tokens <= kMaxVocabulary) return "";
  return absl::StrFormat("expected a number of tokens, 1 to %d", kMaxVocabulary);
}

}  // namespace

DataCommand AddAdoptCommand(CLI::App& app) {
  CLI::App* const adopt = app.add_subcommand("adopt", kAdoptHelp);
  const auto options = std::make_shared<AdoptOptions>();
  adopt
      ->add_option("folder", options->folder,
                   "Folder of *train*.bin and, optionally, *val*.bin files (or .ds)")
      ->required();
  adopt
      ->add_option("--tokenizer", options->tokenizer, "Name of the tokenizer, as in the run's data.tokenizer")
      ->required();
  adopt
      ->add_option("--vocabulary", options->vocabulary,
                   "Number of tokens of the tokenizer; GPT-2: 50257, Llama-3: 128256")
      ->required()
      ->check(VocabularyFault);
  adopt->add_option("--end-of-text", options->end_of_text,
                    "Token that ends each document; GPT-2: 50256. Needed for data.isolate_documents only");
  adopt->add_option("--validation", options->validation_name,
                    "Validation file; default: the one named *val*.bin");
  adopt
      ->add_option(
          "--val-fraction", options->validation_fraction,
          "Without a validation file: fraction of all tokens to hold out at the end of the last file, at "
          "most 10 Mi tokens")
      ->check(CLI::Range(1e-6, 0.999999))
      ->capture_default_str();
  SetHelp(*adopt,
          {.examples = {{"atoll-data adopt fineweb10B --tokenizer gpt2 --vocabulary 50257"}},
           .exit_codes = {ExitCode::kStorage, ExitCode::kBadFiles},
           .notes = "The contents tell the format: llm.c's two versions (modded-nanogpt writes the older "
                    "one), Megatron's .bin with its .idx, and datatrove's .ds with its .metadata or .index. "
                    "Keep these files together; workers read them in place. `atoll-data split` writes any of "
                    "them as llm.c's."});
  return {adopt, [options] { return RunAdopt(*options); }};
}

}  // namespace atl
