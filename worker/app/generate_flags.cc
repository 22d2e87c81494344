#include "worker/app/generate_flags.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/command_line/help.h"
#include "common/command_line/parse.h"
#include "worker/app/source_flags.h"

namespace atl {
namespace {

constexpr uint64_t kLargestSeed = uint64_t{1} << 53;  // what JSON keeps exactly

void AddPrompt(CLI::App& app, GenerateFlags& flags) {
  CLI::Option* const prompt = app.add_option("--prompt", flags.prompt, "Text to continue");
  CLI::Option* const numbers =
      app.add_option("--prompt-tokens", flags.prompt_tokens,
                     "Tokens to continue, as numbers: \"15496 11\". Prints numbers; needs no tokenizer")
          ->check(NotEmpty())
          ->excludes(prompt);
  AddTokenizer(app, flags.tokenizer, flags.tokenizer_pattern)->excludes(numbers);
  app.add_option("--tokens", flags.tokens, "Largest number of tokens to write")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000000));
  app.add_option("--stop", flags.stop, "End before this text; repeat it for several")
      ->allow_extra_args(false)
      ->check(NotEmpty())
      ->excludes(numbers);
  app.add_option("--stop-token", flags.stop_tokens,
                 "End before the token with this number; repeat it for several. A folder's own ends the text "
                 "too")
      ->allow_extra_args(false);
}

void AddSampling(CLI::App& app, SamplingOptions& sampling) {
  app.add_option("--temperature", sampling.temperature,
                 "Sampling temperature; 0: always the most likely token")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 100.0));
  app.add_option("--top-k", sampling.top_k, "Sample among this many most likely tokens; 0: all")
      ->capture_default_str();
  app.add_option("--top-p", sampling.top_p,
                 "Sample among the fewest most likely tokens with this share of the probability; 1: all")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--seed", sampling.seed, "Seed of the sampling")
      ->capture_default_str()
      ->check(CLI::Range(uint64_t{0}, kLargestSeed).description("0 to 2^53"));
}

}  // namespace

CLI::App* AddGenerateCommand(CLI::App& app, GenerateFlags& flags) {
  CLI::App* const command = app.add_subcommand(
      "generate",
      "Write text with the parameters of a live run, one of its checkpoints, or an exported model");
  AddSource(*command, flags.source, app.get_option_no_throw("--coordinator") != nullptr);
  AddPrompt(*command, flags);
  AddSampling(*command, flags.sampling);
  const std::string program = absl::StrCat(app.get_name(), " generate ");
  SetHelp(
      *command,
      {.examples = {{program + "--coordinator 127.0.0.1:7600 --prompt \"Once \" --tokens 200"},
                    {program + "--checkpoint before-lr-change --prompt \"Once \""},
                    {program + "--model model.safetensors --config run.yaml --prompt \"Once \""},
                    {program + "--model my-gpt2 --prompt-tokens \"15496 11\" --temperature 0",
                     "With a folder of transformers; the same tokens as its greedy decoding"}},
       .exit_codes = {ExitCode::kUnavailable, ExitCode::kStorage, ExitCode::kRejected, ExitCode::kBadFiles}});
  return command;
}

void SettleGenerateFlags(const CLI::App& command, GenerateFlags& flags) {
  SettleSource(command, flags.source);
}

}  // namespace atl
