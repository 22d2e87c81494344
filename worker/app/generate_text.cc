#include <algorithm>
#include <cstdio>
#include <memory>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "common/status.h"
#include "worker/app/commands.h"
#include "worker/app/loaded_model.h"
#include "worker/app/model_tokenizer.h"
#include "worker/app/token_output.h"
#include "worker/data/tokenizer.h"

namespace atl {
namespace {

absl::StatusOr<std::unique_ptr<Tokenizer>> TokenizerOf(const GenerateFlags& flags,
                                                       const std::string& of_run) {
  auto tokenizer = TokenizerOfModel({.name = flags.tokenizer,
                                     .pattern = flags.tokenizer_pattern,
                                     .of_run = of_run,
                                     .files = flags.source.files});
  if (tokenizer.ok() || !absl::IsFailedPrecondition(tokenizer.status())) return tokenizer;
  return absl::InvalidArgumentError(
      absl::StrCat(std::string(tokenizer.status().message()),
                   ", so generate cannot turn the prompt into tokens: name the tokenizer's file or folder "
                   "(--tokenizer gpt2/tokenizer.json), or give token numbers (--prompt-tokens)"));
}

absl::StatusOr<std::vector<TokenId>> NumbersIn(const std::string& text) {
  std::vector<TokenId> tokens;
  for (const auto word : absl::StrSplit(text, absl::ByAnyChar(", \n\t"), absl::SkipEmpty())) {
    if (absl::SimpleAtoi(word, &tokens.emplace_back())) continue;
    return absl::InvalidArgumentError(
        absl::StrFormat("--prompt-tokens: '%s' is not the number of a token", std::string(word)));
  }
  return tokens;
}

absl::Status Write(const GenerateFlags& flags, const LoadedModel& model, const std::vector<TokenId>& prompt,
                   TokenOutput& output) {
  std::vector<TokenId> endings = model.endings;
  endings.insert(endings.end(), flags.stop_tokens.begin(), flags.stop_tokens.end());
  const GenerateOptions options = {.tokens = flags.tokens, .sampling = flags.sampling};
  const absl::Status drawn = model.replica->Generate(prompt, options, [&](TokenId token) {
    return std::ranges::find(endings, token) == endings.end() && output.Take(token);
  });
  const absl::Status shown = output.Finish();
  return drawn.ok() ? shown : drawn;
}

absl::Status GenerateNumbers(const GenerateFlags& flags, const Logger& log) {
  ATOLL_ASSIGN_OR_RETURN(const std::vector<TokenId> prompt, NumbersIn(flags.prompt_tokens));
  const auto any_tokenizer = [](const std::string&) { return absl::OkStatus(); };
  ATOLL_ASSIGN_OR_RETURN(const LoadedModel model, LoadModel(flags.source, any_tokenizer, log));
  NumberOutput output(stdout);
  return Write(flags, model, prompt, output);
}

absl::Status GenerateWords(const GenerateFlags& flags, const Logger& log) {
  std::unique_ptr<Tokenizer> tokenizer;
  const auto make_tokenizer = [&](const std::string& of_run) {
    ATOLL_ASSIGN_OR_RETURN(tokenizer, TokenizerOf(flags, of_run));
    WarnOfOtherTokenizer(*tokenizer, {.of_run = of_run, .files = flags.source.files}, log);
    return absl::OkStatus();
  };
  ATOLL_ASSIGN_OR_RETURN(const LoadedModel model, LoadModel(flags.source, make_tokenizer, log));
  std::vector<TokenId> prompt;
  tokenizer->Encode(flags.prompt, prompt);
  TextOutput output(*tokenizer, flags.prompt, flags.stop, stdout);
  return Write(flags, model, prompt, output);
}

}  // namespace

ExitCode GenerateText(const GenerateFlags& flags, const Logger& log) {
  const absl::Status status =
      flags.prompt_tokens.empty() ? GenerateWords(flags, log) : GenerateNumbers(flags, log);
  if (status.ok()) return ExitCode::kOk;
  log.Error(std::string(status.message()));
  return ModelExitCode(status, !flags.source.files.empty());
}

}  // namespace atl
