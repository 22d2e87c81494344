#include "worker/app/generate_flags.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/command_line/help.h"
#include "common/command_line/parse.h"
#include "protos/transport/security_flags.h"

namespace atl {
namespace {

constexpr uint64_t kLargestSeed = uint64_t{1} << 53;  // what JSON keeps exactly

/// `inherited`: the program's own option of this name, whose value counts here too (worker/main.cc), has the
/// variable.
void AddAddresses(CLI::App& app, ModelSource& source, bool inherited) {
  CLI::Option* const data =
      app.add_option("--coordinator", source.coordinator,
                     inherited ? "Address of the coordinator's data port (Env:ATOLL_COORDINATOR)"
                               : "Address of the coordinator's data port")
          ->capture_default_str();
  if (!inherited) data->envname("ATOLL_COORDINATOR");
  app.add_option("--admin", source.admin,
                 "Address of the coordinator's admin port, for --version and --checkpoint. Alone: read the "
                 "newest version there")
      ->capture_default_str()
      ->envname("ATOLL_ADMIN");
}

void AddSource(CLI::App& app, ModelSource& source, bool inherited) {
  AddAddresses(app, source, inherited);
  CLI::Option* const version =
      app.add_option("--version", source.stored.version,
                     "Use this version of the run, if it is still stored (checkpoint.keep_versions)")
          ->check(NotNegative());
  CLI::Option* const checkpoint = app.add_option("--checkpoint", source.stored.checkpoint,
                                                 "Use this checkpoint of the run; needs an admin's token")
                                      ->check(NotEmpty())
                                      ->excludes(version);
  CLI::Option* const model = app.add_option("--model", source.files,
                                            "Read the parameters from this safetensors file, or this folder "
                                            "of Hugging Face's transformers (both of "
                                            "atollctl export)")
                                 ->excludes(version)
                                 ->excludes(checkpoint);
  app.add_option("--config", source.config,
                 "With --model: configuration file of the run (YAML). A folder has config.json instead")
      ->needs(model);
  AddClientSecurityFlags(app, source.security);
  app.add_option("--device", source.device, "Device to compute on: auto, cpu, cuda or cuda:N")
      ->capture_default_str();
  app.add_option("--threads", source.threads, "Threads for computation; 0: LibTorch's choice")
      ->capture_default_str()
      ->check(CLI::Range(0, 1024));
}

void AddPrompt(CLI::App& app, GenerateFlags& flags) {
  CLI::Option* const prompt = app.add_option("--prompt", flags.prompt, "Text to continue");
  CLI::Option* const numbers =
      app.add_option("--prompt-tokens", flags.prompt_tokens,
                     "Tokens to continue, as numbers: \"15496 11\". Prints numbers; needs no tokenizer")
          ->check(NotEmpty())
          ->excludes(prompt);
  CLI::Option* const tokenizer =
      app.add_option(
             "--tokenizer", flags.tokenizer,
             "Tokenizer of the model: bytes, or its tokenizer.json, vocab.json or .tiktoken file, or a "
             "folder with one; default: that of the run, or the one in the folder of --model")
          ->excludes(numbers);
  app.add_option("--tokenizer-pattern", flags.tokenizer_pattern,
                 "How the tokenizer divides text if its file does not say so, for example gpt2")
      ->needs(tokenizer);
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
  ModelSource& source = flags.source;
  const bool data = command.get_option("--coordinator")->count() > 0;
  const bool admin = command.get_option("--admin")->count() > 0;
  if (!source.stored.newest() && data && !admin) {
    throw CLI::ValidationError(
        source.stored.version ? "--version" : "--checkpoint",
        "is read through the admin port, which could be another run's here: also give --admin HOST:PORT");
  }
  source.through_admin = !source.stored.newest() || (admin && !data);
}

}  // namespace atl
