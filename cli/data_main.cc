#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_format.h"
#include "atoll/version.h"
#include "common/clock.h"
#include "common/exit_codes.h"
#include "common/human.h"
#include "common/progress_bar.h"
#include "common/status.h"
#include "worker/data/dataset.h"
#include "worker/data/tokenize.h"
#include "worker/data/tokenizer.h"

namespace atoll {
namespace {

constexpr char kFooter[] = R"(Examples:
  atoll-data tokenize --tokenizer bytes --out data/book book.txt
  zcat dump.gz | atoll-data tokenize --tokenizer bytes --out data/dump -
  atoll-data inspect data/book
)";

constexpr char kTokenizeHelp[] =
    "Turn text files into a dataset folder that workers train on: train_000.bin, ... and val.bin (llm.c's "
    "token "
    "files) and meta.json. The LAST part of the text becomes val.bin, which is never trained on. Files may "
    "be "
    "gzip-compressed.";

constexpr char kInspectHelp[] =
    "Check every file of a dataset folder and say what is in it: tokenizer, tokens, fingerprint, and the "
    "first "
    "words of both parts.";

void PrintDescription(const std::string& folder, const DatasetDescription& description) {
  uint64_t train = 0;
  for (const TokenFileEntry& entry : description.train) train += entry.tokens;
  absl::PrintF("folder       %s\n", folder);
  absl::PrintF("tokenizer    %s (vocabulary %d)\n", description.tokenizer, description.vocabulary);
  absl::PrintF("training     %d tokens in %d file(s)\n", train, description.train.size());
  absl::PrintF("held out     %d tokens (%s)\n", description.validation.tokens, description.validation.name);
  absl::PrintF("fingerprint  %s\n", description.fingerprint);
}

std::string Printable(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return text;
}

absl::Status RunTokenize(const std::string& tokenizer_name, const TokenizeOptions& options) {
  ATOLL_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer, MakeTokenizer(tokenizer_name));
  const SystemClock clock{};
  // The size of the input is known only once it is open, so the bar is made at the first piece.
  std::unique_ptr<ProgressBar> bar;
  const auto progress = [&](uint64_t done, uint64_t total) {
    if (!bar) {
      ProgressOptions look;
      look.label = "tokenize";
      look.total = total;
      look.unit = ProgressUnit::kBytes;
      look.style = ProgressStyleFor(STDERR_FILENO, std::getenv("TERM"));
      bar = std::make_unique<ProgressBar>(look, &clock, &std::cerr);
    }
    bar->Update(done);
  };
  ATOLL_ASSIGN_OR_RETURN(const DatasetDescription description, Tokenize(*tokenizer, options, progress));
  if (bar) bar->Finish();
  PrintDescription(options.folder, description);
  return absl::OkStatus();
}

absl::Status RunInspect(const std::string& folder) {
  ATOLL_ASSIGN_OR_RETURN(const Dataset dataset, Dataset::Open(folder, {65536, 1, ""}));
  ATOLL_RETURN_IF_ERROR(dataset.VerifyContents());
  PrintDescription(folder, dataset.description());
  const absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer = MakeTokenizer(dataset.description().tokenizer);
  if (!tokenizer.ok()) return absl::OkStatus();
  std::vector<uint16_t> first(std::min<uint64_t>(72, dataset.train_tokens()));
  dataset.ReadTrain(0, first);
  absl::PrintF("begins with  %s\n", Printable((*tokenizer)->Decode(first)));
  const std::span<const uint16_t> validation = dataset.validation();
  absl::PrintF("held out     %s\n",
               Printable((*tokenizer)->Decode(validation.first(std::min<size_t>(72, validation.size())))));
  return absl::OkStatus();
}

// What fails here is about files unless the disk is at fault.
ExitCode ExitCodeFor(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return ExitCode::kOk;
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kPermissionDenied:
      return ExitCode::kStorage;
    case absl::StatusCode::kInternal:
      return ExitCode::kInternal;
    case absl::StatusCode::kFailedPrecondition:
      return ExitCode::kUsage;
    default:
      return ExitCode::kBadFiles;
  }
}

int Main(int argc, char** argv) {
  CLI::App app("atoll-data: text to token files for training.", "atoll-data");
  app.set_version_flag(
      "--version", absl::StrFormat("atoll-data %s (%s)", std::string(kVersion), std::string(kGitRevision)));
  app.footer(std::string(kFooter) + "\n" + ExitCodeTable());
  app.require_subcommand(1);

  std::string tokenizer = "bytes";
  TokenizeOptions options;
  CLI::App* tokenize = app.add_subcommand("tokenize", kTokenizeHelp);
  tokenize->add_option("--tokenizer", tokenizer, "bytes: one token per byte, vocabulary 256")
      ->check(CLI::IsMember({"bytes"}))
      ->capture_default_str();
  tokenize->add_option("--out", options.folder, "The dataset folder to make")->required();
  tokenize
      ->add_option("--val-fraction", options.validation_fraction,
                   "Part of the text that is held out, at its end")
      ->check(CLI::Range(1e-6, 0.999999))
      ->capture_default_str();
  tokenize->add_option("files", options.inputs, "Text files, in order; - is the standard input")->required();

  std::string folder;
  CLI::App* inspect = app.add_subcommand("inspect", kInspectHelp);
  inspect->add_option("folder", folder, "A dataset folder")->required();

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? ToInt(ExitCode::kOk) : ToInt(ExitCode::kUsage);
  }
  const absl::Status status = tokenize->parsed() ? RunTokenize(tokenizer, options) : RunInspect(folder);
  if (!status.ok()) std::fprintf(stderr, "atoll-data: %s\n", std::string(status.message()).c_str());
  return ToInt(ExitCodeFor(status));
}

}  // namespace
}  // namespace atoll

int main(int argc, char** argv) { return atoll::Main(argc, argv); }
