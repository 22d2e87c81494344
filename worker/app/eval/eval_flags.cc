#include "worker/app/eval/eval_flags.h"

#include "absl/strings/str_cat.h"
#include "common/command_line/help.h"
#include "common/command_line/parse.h"
#include "worker/app/source_flags.h"

namespace atl {
namespace {

constexpr char kModelsGroup[] = "Models";
constexpr char kFilesGroup[] = "What to measure them on";

template <typename Values>
CLI::Option* AddList(CLI::App& app, const std::string& name, Values& values, const std::string& about,
                     const std::string& group) {
  return app.add_option(name, values, about + "; repeat it for several")
      ->allow_extra_args(false)
      ->check(NotEmpty())
      ->group(group);
}

void AddModels(CLI::App& app, EvalFlags& flags) {
  AddAddresses(app, flags.source, /*inherited=*/false);
  CLI::Option* const model =
      AddList(app, "--model", flags.models,
              "Measure the model of this safetensors file, or of this folder of Hugging Face's transformers "
              "(both of atollctl export)",
              kModelsGroup);
  app.add_option("--config", flags.source.config,
                 "With --model: configuration file of the run (YAML). A folder has config.json instead")
      ->needs(model)
      ->group(kModelsGroup);
  app.add_option("--version", flags.versions,
                 "Measure this version of the run, if it is still stored; repeat it for several")
      ->allow_extra_args(false)
      ->check(NotNegative())
      ->group(kModelsGroup);
  AddList(app, "--checkpoint", flags.checkpoints,
          "Measure this checkpoint of the run; needs an admin's token", kModelsGroup);
}

void AddFiles(CLI::App& app, EvalFlags& flags) {
  AddList(app, "--data", flags.data, "Held-out tokens of this dataset folder, or this token file of llm.c",
          kFilesGroup);
  AddList(app, "--text", flags.texts, "This text file", kFilesGroup);
  AddList(app, "--choices", flags.choices, "This multiple-choice file of llm.c (hellaswag_val.bin)",
          kFilesGroup);
  AddList(app, "--hellaswag", flags.hellaswag, "This file of HellaSwag (hellaswag_val.jsonl)", kFilesGroup);
  AddList(app, "--mmlu", flags.mmlu,
          "This file of MMLU, or this folder of such files (test/anatomy_test.csv, or JSON lines)",
          kFilesGroup);
  CLI::Option* const examples = app.add_option("--mmlu-examples", flags.mmlu_examples,
                                               "File or folder of the examples of --shots (dev)")
                                    ->check(NotEmpty())
                                    ->group(kFilesGroup);
  app.add_option("--shots", flags.shots, "Examples before each question of MMLU")
      ->capture_default_str()
      ->check(CLI::Range(0, 100))
      ->needs(examples)
      ->group(kFilesGroup);
}

void AddScoring(CLI::App& app, EvalFlags& flags) {
  app.add_option("--limit", flags.limit, "Measure the first questions of each file only, this many; 0: all")
      ->capture_default_str()
      ->check(NotNegative());
  app.add_option("--limit-tokens", flags.limit_tokens,
                 "Measure the first tokens of each text only, this many; 0: all")
      ->capture_default_str()
      ->check(NotNegative());
  app.add_option(
         "--stride", flags.stride,
         "Tokens of a text to score in each reading; fewer let the model see more of what precedes, and "
         "take longer. 0: as many as the model sees at once")
      ->capture_default_str()
      ->check(NotNegative());
  app.add_flag("--json", flags.json, "Print JSON");
  AddComputation(app, flags.source);
  AddTokenizer(app, flags.tokenizer, flags.tokenizer_pattern);
  app.add_option(
      "--begin-token", flags.begin_token,
      "Put the token with this number before every text and question. Default: before texts the one "
      "that the folder of --model names, and before questions none");
}

}  // namespace

CLI::App* AddEvalCommand(CLI::App& app, EvalFlags& flags) {
  CLI::App* const command = app.add_subcommand(
      "eval",
      "Measure models on your files: loss, perplexity and bits per byte of text, accuracy of questions with "
      "several answers");
  AddModels(*command, flags);
  AddFiles(*command, flags);
  AddScoring(*command, flags);
  const std::string program = absl::StrCat(app.get_name(), " eval ");
  SetHelp(
      *command,
      {.examples = {{program + "--data tokens", "Measure the live run on this machine on held-out tokens"},
                    {program + "--model trained --text book.txt --hellaswag hellaswag_val.jsonl"},
                    {program + "--model before --model after --mmlu test --mmlu-examples dev --shots 5",
                     "Compare two exported models, as lm-evaluation-harness measures them"},
                    {program + "--version 10 --version 20 --data tokens --json"}},
       .exit_codes = {ExitCode::kUnavailable, ExitCode::kStorage, ExitCode::kRejected, ExitCode::kBadFiles},
       .notes =
           "Without --model, --version and --checkpoint, the model is the newest version of the run.\n\n"
           "Questions are scored in two ways: the answer with the largest sum of log-probabilities counts, "
           "or the one with the largest sum divided by the answer's length. docs/reference/evaluation.md "
           "says how."});
  return command;
}

void SettleEvalFlags(const CLI::App& command, EvalFlags& flags) {
  const bool stored = !flags.versions.empty() || !flags.checkpoints.empty();
  const bool data = command.get_option("--coordinator")->count() > 0;
  const bool admin = command.get_option("--admin")->count() > 0;
  if (stored && data && !admin) {
    throw CLI::ValidationError(
        flags.versions.empty() ? "--checkpoint" : "--version",
        "is read through the admin port, which could be another run's here: also give --admin HOST:PORT");
  }
  flags.source.through_admin = stored || (admin && !data);
  const bool work = !flags.data.empty() || !flags.texts.empty() || !flags.choices.empty() ||
                    !flags.hellaswag.empty() || !flags.mmlu.empty();
  if (!work) {
    throw CLI::ValidationError(
        "eval", "needs something to measure the model on: --data, --text, --choices, --hellaswag or --mmlu");
  }
}

}  // namespace atl
