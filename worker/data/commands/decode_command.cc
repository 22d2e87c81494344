#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/command_line/help.h"
#include "common/status.h"
#include "worker/data/commands/command.h"
#include "worker/data/commands/tokenizer_flag.h"
#include "worker/data/dataset.h"

namespace atl {
namespace {

constexpr char kDecodeHelp[] = "Print the text of a dataset folder, or a part of it";
constexpr uint64_t kPieceTokens = uint64_t{1} << 16;

struct DecodeFlags {
  std::string folder, part = "train";
  uint64_t first = 0;
  uint64_t tokens = UINT64_MAX;
  TokenizerFlag tokenizer;
};

absl::Status RunDecode(const DecodeFlags& flags) {
  ATOLL_ASSIGN_OR_RETURN(const Dataset dataset, Dataset::Open(flags.folder, {kMaxVocabulary, 1, ""}));
  ATOLL_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer,
                         TokenizerOf(dataset.description().tokenizer, flags.tokenizer));
  const bool train = flags.part == "train";
  const uint64_t size = train ? dataset.train_tokens() : dataset.validation_tokens();
  if (flags.first >= size) {
    return absl::InvalidArgumentError(absl::StrFormat("--first %d: the part '%s' of %s has %d tokens",
                                                      flags.first, flags.part, flags.folder, size));
  }
  const uint64_t end = flags.first + std::min(flags.tokens, size - flags.first);
  std::vector<TokenId> piece;
  for (uint64_t at = flags.first; at < end; at += piece.size()) {
    piece.resize(std::min(kPieceTokens, end - at));
    ATOLL_RETURN_IF_ERROR(train ? dataset.ReadTrain(at, piece) : dataset.ReadValidation(at, piece));
    const std::string text = tokenizer->Decode(piece);
    // main reports what could not be written.
    if (std::fwrite(text.data(), 1, text.size(), stdout) < text.size()) break;
  }
  return absl::OkStatus();
}

}  // namespace

DataCommand AddDecodeCommand(CLI::App& app) {
  CLI::App* const decode = app.add_subcommand("decode", kDecodeHelp);
  const auto flags = std::make_shared<DecodeFlags>();
  decode->add_option("folder", flags->folder, "Dataset folder")->required();
  decode->add_option("--part", flags->part, "Part to print: train or validation")
      ->check(CLI::IsMember({"train", "validation"}))
      ->capture_default_str();
  decode->add_option("--first", flags->first, "First token to print, counted from 0")->capture_default_str();
  decode->add_option("--tokens", flags->tokens, "Number of tokens to print; default: all that follow");
  flags->tokenizer.AddTo(*decode);
  SetHelp(*decode,
          {.examples = {{"atoll-data decode data/book --tokens 100"},
                        {"atoll-data decode data/book --tokenizer gpt2/tokenizer.json --part validation"}},
           .exit_codes = {ExitCode::kStorage, ExitCode::kBadFiles},
           .notes = "The text between two documents is the name of the end-of-text token. A part that "
                    "begins or ends inside a character has incomplete UTF-8 there."});
  return {decode, [flags] { return RunDecode(*flags); }};
}

}  // namespace atl
