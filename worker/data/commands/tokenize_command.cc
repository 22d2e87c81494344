#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "common/clock.h"
#include "common/command_line/help.h"
#include "common/command_line/parse.h"
#include "common/human.h"
#include "common/status.h"
#include "core/token_format.h"
#include "worker/data/commands/command.h"
#include "worker/data/commands/output.h"
#include "worker/data/commands/tokenizer_flag.h"
#include "worker/data/tokenize/tokenize.h"

namespace atl {
namespace {

constexpr char kTokenizeHelp[] =
    "Convert text to a dataset folder. Each file, or each line of JSON, is a document. One part of the text "
    "is "
    "held out: it becomes val.bin, which no worker trains on";
constexpr char kTokenizeNotes[] =
    "Plain text, gzip and zstd are told apart by their contents. A folder stands for the files in and below "
    "it "
    "without the hidden ones, in the order of their paths. A document ends with the tokenizer's end-of-text "
    "token; bytes has none, so JSON lines get a line feed.\n"
    "The dataset appears when it is complete. A call that was killed is continued by the same call. The "
    "result "
    "depends on neither that nor the number of threads.";

struct TokenizeFlags {
  TokenizerFlag tokenizer{.name = "bytes", .pattern = ""};
  std::string format;  // empty: by --field
  std::vector<std::string> validation;
  double val_fraction = 0;
  TokenizeOptions options;
};

std::string ValidationFault(const std::string& text) {
  const absl::StatusOr<ValidationChoice> choice = ParseValidation({text});
  return choice.ok() ? "" : std::string(choice.status().message());
}

absl::Status RunTokenize(TokenizeFlags& flags) {
  TokenizeOptions& options = flags.options;
  if (flags.format == "jsonl" && options.field.empty()) options.field = "text";
  if (!options.field.empty()) options.format = TextFormat::kJsonLines;
  options.any_text = flags.format == "text";
  if (!flags.validation.empty()) {
    ATOLL_ASSIGN_OR_RETURN(options.validation, ParseValidation(flags.validation));
  }
  if (flags.val_fraction > 0) options.validation.share = flags.val_fraction;
  ATOLL_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer, flags.tokenizer.Make());
  const SystemClock clock{};
  LazyBar read("tokenize", ProgressUnit::kBytes, clock), write("write", ProgressUnit::kCount, clock);
  const TokenizeEvents events{.read = [&](uint64_t done, uint64_t total) { read.Update(done, total); },
                              .write =
                                  [&](uint64_t done, uint64_t total) {
                                    read.Finish();
                                    write.Update(done, total);
                                  },
                              .notice = [](const std::string& line) { std::cerr << line << "\n"; }};
  ATOLL_ASSIGN_OR_RETURN(const TokenizeResult result, Tokenize(*tokenizer, options, clock, events));
  read.Finish();
  write.Finish();
  absl::PrintF("documents    %d in %d file(s)\n", result.documents, result.inputs);
  if (result.skipped_lines > 0) {
    absl::PrintF("left out     %s, listed in %s/%s\n", Counted(result.skipped_lines, "bad line"),
                 options.folder, kSkippedLines);
  }
  PrintDescription(options.folder, result.description);
  return absl::OkStatus();
}

void AddInputOptions(CLI::App& command, TokenizeFlags& flags) {
  TokenizeOptions& options = flags.options;
  CLI::Option* const field = command
                                 .add_option("--field", options.field,
                                             "Read JSON lines, and take the string of this field as the text")
                                 ->check(NotEmpty());
  command
      .add_option("--format", flags.format,
                  "Format of the files: text, or jsonl with the field 'text'. Default: text, and a file that "
                  "looks like JSON lines is rejected")
      ->check(CLI::IsMember({"text", "jsonl"}))
      ->each([field](const std::string& format) {
        if (format == "text" && field->count() > 0)
          throw CLI::ValidationError("--format text", "excludes --field");
      });
  command.add_flag("--skip-bad-lines", options.skip_bad_lines,
                   "Leave out lines that are not valid JSON, lack the field, or are not UTF-8; list them in "
                   "skipped_lines.txt");
  command.add_option("files", options.inputs, "Files, folders and patterns, in order; - is standard input")
      ->required();
}

void AddResultOptions(CLI::App& command, TokenizeFlags& flags) {
  TokenizeOptions& options = flags.options;
  command.add_option("--out", options.folder, "Dataset folder to create")->required()->check(NotEmpty());
  command.add_option("--threads", options.threads, "Threads that encode; default: one for each processor")
      ->check(CLI::Range(1, 1024));
  command
      .add_option("--shard-tokens", options.tokens_per_file,
                  "Tokens of a training file; the last one has fewer")
      ->check(CLI::Range(uint64_t{1}, kMaxTokensPerFile))
      ->capture_default_str();
  CLI::Option* const validation =
      command
          .add_option(
              "--validation", flags.validation,
              "What is held out. share:0.05: the last 5 % of the tokens. hash:0.05: 5 % of the documents, "
              "chosen by their hash, so that equal documents are on one side, in every dataset. file:NAME: "
              "the documents of that file, folder or pattern; may be repeated. Default: share:0.05")
          ->check(ValidationFault)
          ->allow_extra_args(false);
  command.add_option("--val-fraction", flags.val_fraction, "The same as --validation share:FRACTION")
      ->check(CLI::Range(1e-6, 0.999999))
      ->excludes(validation);
  command.add_option("--shuffle-documents", options.shuffle_seed,
                     "Shuffle the documents with this seed. Memory stays bounded");
}

}  // namespace

DataCommand AddTokenizeCommand(CLI::App& app) {
  CLI::App* const command = app.add_subcommand("tokenize", kTokenizeHelp);
  const auto flags = std::make_shared<TokenizeFlags>();
  flags->options.threads = std::max(1u, std::thread::hardware_concurrency());
  flags->tokenizer.AddTo(*command);
  AddInputOptions(*command, *flags);
  AddResultOptions(*command, *flags);
  SetHelp(*command,
          {.examples =
               {{"atoll-data tokenize --tokenizer bytes --out data/book book.txt more.txt.gz"},
                {"atoll-data tokenize --tokenizer gpt2/tokenizer.json --out data/book book.txt"},
                {"atoll-data tokenize --field text --validation hash:0.01 --out data/web 'dump/*.jsonl.zst'"},
                {"xzcat dump.xz | atoll-data tokenize --tokenizer bytes --out data/dump -"}},
           .exit_codes = {ExitCode::kStorage, ExitCode::kBadFiles},
           .notes = kTokenizeNotes});
  return {command, [flags] { return RunTokenize(*flags); }};
}

}  // namespace atl
