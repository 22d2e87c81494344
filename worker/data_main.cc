#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "atoll/version.h"
#include "common/clock.h"
#include "common/command_line/help.h"
#include "common/command_line/parse.h"
#include "common/did_you_mean.h"
#include "common/exit_codes.h"
#include "common/file.h"
#include "common/human.h"
#include "common/process_setup.h"
#include "common/progress_bar.h"
#include "common/standard_output.h"
#include "common/status.h"
#include "core/tokenizer_names.h"
#include "worker/data/adopt.h"
#include "worker/data/dataset.h"
#include "worker/data/tokenize.h"
#include "worker/data/tokenizer.h"

namespace atl {
namespace {

constexpr char kTokenizeHelp[] =
    "Convert text files, plain or gzip-compressed, to a dataset folder. The last part of the text is held "
    "out: it becomes val.bin, which no worker trains on";
constexpr char kAdoptHelp[] =
    "Make an existing folder of token shards (llm.c, modded-nanogpt) a dataset folder: write its meta.json "
    "and change no shard";
constexpr char kInspectHelp[] =
    "Check every file of a dataset folder and show tokenizer, tokens, fingerprint and the first words";

void PrintDescription(const std::string& folder, const DatasetDescription& description) {
  uint64_t train = 0;
  for (const TokenFileEntry& entry : description.train) train += entry.tokens;
  absl::PrintF("folder       %s\n", folder);
  absl::PrintF("tokenizer    %s (vocabulary %d)\n", description.tokenizer, description.vocabulary);
  absl::PrintF("training     %d tokens in %d file(s)\n", train, description.train.size());
  absl::PrintF("held out     %d tokens (%s%s)\n", description.validation.tokens,
               description.validation.whole() ? "" : "the end of ", description.validation.name);
  absl::PrintF("fingerprint  %s\n", description.fingerprint);
}

std::string Printable(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return text;
}

std::unique_ptr<ProgressBar> MakeBar(const std::string& label, uint64_t total, const Clock& clock) {
  ProgressOptions look;
  look.label = label;
  look.total = total;
  look.unit = ProgressUnit::kBytes;
  look.style = ProgressStyleFor(STDERR_FILENO, std::getenv("TERM"));
  return std::make_unique<ProgressBar>(look, &clock, &std::cerr);
}

bool IsTokenizerName(const std::string& name) {
  return std::ranges::find(kTokenizerNames, name) != std::end(kTokenizerNames);
}

absl::Status RunTokenize(const std::string& name, const std::string& pattern,
                         const TokenizeOptions& options) {
  ATOLL_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer,
                         IsTokenizerName(name) ? MakeTokenizer(name) : MakeFileTokenizer(name, pattern));
  const SystemClock clock{};
  // The size of the input is known only after it is open, so create the bar at the first piece.
  std::unique_ptr<ProgressBar> bar;
  const auto progress = [&](uint64_t done, uint64_t total) {
    if (!bar) bar = MakeBar("tokenize", total, clock);
    bar->Update(done);
  };
  ATOLL_ASSIGN_OR_RETURN(const DatasetDescription description, Tokenize(*tokenizer, options, progress));
  if (bar) bar->Finish();
  PrintDescription(options.folder, description);
  return absl::OkStatus();
}

absl::Status RunInspect(const std::string& folder) {
  ATOLL_ASSIGN_OR_RETURN(const Dataset dataset, Dataset::Open(folder, {kMaxVocabulary, 1, ""}));
  ATOLL_RETURN_IF_ERROR(dataset.VerifyContents());
  PrintDescription(folder, dataset.description());
  const absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer = MakeTokenizer(dataset.description().tokenizer);
  if (!tokenizer.ok()) return absl::OkStatus();
  std::vector<TokenId> first(std::min<uint64_t>(72, dataset.train_tokens()));
  ATOLL_RETURN_IF_ERROR(dataset.ReadTrain(0, first));
  absl::PrintF("begins with  %s\n", Printable((*tokenizer)->Decode(first)));
  const TokenView& validation = dataset.validation();
  absl::PrintF(
      "held out     %s\n",
      Printable((*tokenizer)->Decode(validation.first(std::min<uint64_t>(72, validation.size())).Tokens())));
  return absl::OkStatus();
}

absl::Status RunAdopt(const AdoptOptions& options) {
  const SystemClock clock{};
  std::unique_ptr<ProgressBar> bar;
  ATOLL_ASSIGN_OR_RETURN(const DatasetDescription description,
                         Adopt(options, [&](uint64_t done, uint64_t total) {
                           if (!bar) bar = MakeBar("adopt", total, clock);
                           bar->Update(done);
                         }));
  if (bar) bar->Finish();
  PrintDescription(options.folder, description);
  return absl::OkStatus();
}

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

/// The problem with a tokenizer for `tokenize`; empty if it is valid, or a file to read.
std::string TokenizerFault(const std::string& name) {
  const bool file = name.find_first_of("/.") != std::string::npos;
  if (file || IsTokenizerName(name) || FileExists(name)) return "";
  const std::vector<std::string> known(std::begin(kTokenizerNames), std::end(kTokenizerNames));
  const std::string meant = DidYouMean(name, known);
  return absl::StrFormat(
      "there is no file of this name%s, and the only tokenizer without a file is '%s'; name the "
      "tokenizer.json, vocab.json or .tiktoken file of another one. For one that Atoll cannot read, make "
      "token "
      "shards with another program (for example modded-nanogpt's), then run `atoll-data adopt FOLDER "
      "--tokenizer %s --vocabulary N`",
      meant.empty() ? "" : absl::StrFormat(" (did you mean '%s'?)", meant), absl::StrJoin(known, "', '"),
      name);
}

CLI::App* AddTokenize(CLI::App& app, std::string& tokenizer, std::string& pattern, TokenizeOptions& options) {
  CLI::App* tokenize = app.add_subcommand("tokenize", kTokenizeHelp);
  tokenize
      ->add_option("--tokenizer", tokenizer,
                   "Tokenizer: bytes (one token per byte, vocabulary 256), or a tokenizer.json, vocab.json "
                   "or .tiktoken file, "
                   "or its folder")
      ->check(TokenizerFault)
      ->capture_default_str();
  tokenize
      ->add_option("--tokenizer-pattern", pattern,
                   "How a tokenizer divides text if its file does not say so and its vocabulary is not a "
                   "published one")
      ->check(CLI::IsMember({"gpt2", "cl100k", "o200k", "llama3", "qwen2", "smollm"}));
  tokenize->add_option("--out", options.folder, "Dataset folder to create")->required()->check(NotEmpty());
  tokenize
      ->add_option("--val-fraction", options.validation_fraction,
                   "Fraction of the text that is held out, at its end")
      ->check(CLI::Range(1e-6, 0.999999))
      ->capture_default_str();
  tokenize->add_option("files", options.inputs, "Text files, in order; - is standard input")->required();
  SetHelp(*tokenize,
          {.examples = {{"atoll-data tokenize --tokenizer bytes --out data/book book.txt more.txt.gz"},
                        {"atoll-data tokenize --tokenizer gpt2/tokenizer.json --out data/book book.txt"},
                        {"zcat dump.gz | atoll-data tokenize --tokenizer bytes --out data/dump -"}},
           .exit_codes = {ExitCode::kStorage, ExitCode::kBadFiles}});
  return tokenize;
}

/// The problem with a vocabulary; empty if it is valid.
std::string VocabularyFault(const std::string& text) {
  uint64_t tokens = 0;
  if (absl::SimpleAtoi(text, &tokens) && tokens >= 1 && tokens <= kMaxVocabulary) return "";
  return absl::StrFormat("expected a number of tokens, 1 to %d", kMaxVocabulary);
}

CLI::App* AddAdopt(CLI::App& app, AdoptOptions& options) {
  CLI::App* adopt = app.add_subcommand("adopt", kAdoptHelp);
  adopt->add_option("folder", options.folder, "Folder of *train*.bin and, optionally, *val*.bin files")
      ->required();
  adopt->add_option("--tokenizer", options.tokenizer, "Name of the tokenizer, as in the run's data.tokenizer")
      ->required();
  adopt
      ->add_option("--vocabulary", options.vocabulary,
                   "Number of tokens of the tokenizer; GPT-2: 50257, Llama-3: 128256")
      ->required()
      ->check(VocabularyFault);
  adopt->add_option("--validation", options.validation_name,
                    "Validation file; default: the one named *val*.bin");
  adopt
      ->add_option(
          "--val-fraction", options.validation_fraction,
          "Without a validation file: fraction of all tokens to hold out at the end of the last file, at "
          "most 10 Mi tokens")
      ->check(CLI::Range(1e-6, 0.999999))
      ->capture_default_str();
  SetHelp(*adopt, {.examples = {{"atoll-data adopt fineweb10B --tokenizer gpt2 --vocabulary 50257"}},
                   .exit_codes = {ExitCode::kStorage, ExitCode::kBadFiles}});
  return adopt;
}

CLI::App* AddInspect(CLI::App& app, std::string& folder) {
  CLI::App* inspect = app.add_subcommand("inspect", kInspectHelp);
  inspect->add_option("folder", folder, "Dataset folder")->required();
  SetHelp(*inspect, {.examples = {{"atoll-data inspect data/book"}},
                     .exit_codes = {ExitCode::kStorage, ExitCode::kBadFiles}});
  return inspect;
}

int Main(int argc, char** argv) {
  CLI::App app("Prepare token files for training.", "atoll-data");
  app.set_version_flag(
      "--version", absl::StrFormat("atoll-data %s (%s)", std::string(kVersion), std::string(kGitRevision)));
  app.require_subcommand(1);
  std::string tokenizer = "bytes", pattern, folder;
  TokenizeOptions tokenize_options;
  AdoptOptions adopt_options;
  const CLI::App* tokenize = AddTokenize(app, tokenizer, pattern, tokenize_options);
  const CLI::App* adopt = AddAdopt(app, adopt_options);
  AddInspect(app, folder);
  SetHelp(app, {.examples = {{"atoll-data tokenize --tokenizer bytes --out data/book book.txt"},
                             {"atoll-data adopt fineweb10B --tokenizer gpt2 --vocabulary 50257"},
                             {"atoll-data inspect data/book"}}});
  if (const auto code = ParseCommandLine(app, argc, argv)) return ToInt(*code);
  absl::Status status = tokenize->parsed() ? RunTokenize(tokenizer, pattern, tokenize_options)
                        : adopt->parsed()  ? RunAdopt(adopt_options)
                                           : RunInspect(folder);
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
