#include "worker/data/commands/tokenizer_flag.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/did_you_mean.h"
#include "common/file.h"
#include "common/status.h"
#include "core/tokenizer_names.h"

namespace atl {
namespace {

bool IsTokenizerName(const std::string& name) {
  return std::ranges::find(kTokenizerNames, name) != std::end(kTokenizerNames);
}

/// The problem with a tokenizer; empty if it is valid, or a file to read.
std::string TokenizerFault(const std::string& name) {
  const bool file = name.find_first_of("/.") != std::string::npos;
  if (file || IsTokenizerName(name) || FileExists(name)) return "";
  const std::vector<std::string> known(std::begin(kTokenizerNames), std::end(kTokenizerNames));
  const std::string meant = DidYouMean(name, known);
  return absl::StrFormat(
      "there is no file '%s'%s, and the only tokenizer without a file is '%s'; name the "
      "tokenizer.json, vocab.json or .tiktoken file of another one. For one that Atoll cannot read, make "
      "token shards with another program (for example modded-nanogpt's), then run `atoll-data adopt FOLDER "
      "--tokenizer %s --vocabulary N`",
      name, meant.empty() ? "" : absl::StrFormat(" (did you mean '%s'?)", meant),
      absl::StrJoin(known, "', '"), name);
}

}  // namespace

void TokenizerFlag::AddTo(CLI::App& command) {
  command
      .add_option("--tokenizer", name,
                  "Tokenizer: bytes (one token per byte, vocabulary 256), or a tokenizer.json, vocab.json "
                  "or .tiktoken file, "
                  "or its folder")
      ->check(TokenizerFault)
      ->capture_default_str();
  command
      .add_option("--tokenizer-pattern", pattern,
                  "How a tokenizer divides text if its file does not say so and its vocabulary is not a "
                  "published one")
      ->check(CLI::IsMember({"gpt2", "cl100k", "o200k", "llama3", "qwen2", "smollm"}));
}

absl::StatusOr<std::unique_ptr<Tokenizer>> TokenizerFlag::Make() const {
  return IsTokenizerName(name) ? MakeTokenizer(name) : MakeFileTokenizer(name, pattern);
}

absl::StatusOr<std::unique_ptr<Tokenizer>> TokenizerOf(const std::string& dataset_tokenizer,
                                                       const TokenizerFlag& flag) {
  if (flag.name.empty()) {
    if (IsTokenizerName(dataset_tokenizer)) return MakeTokenizer(dataset_tokenizer);
    return absl::InvalidArgumentError(
        absl::StrCat("the tokens are those of ", dataset_tokenizer, "; name its files with --tokenizer"));
  }
  ATOLL_ASSIGN_OR_RETURN(std::unique_ptr<Tokenizer> tokenizer, flag.Make());
  if (tokenizer->name() == dataset_tokenizer) return tokenizer;
  return absl::InvalidArgumentError(absl::StrCat(
      "the tokens are those of ", dataset_tokenizer, ", and ", flag.name, " is ",
      std::string(tokenizer->name()), "; name the files of ", dataset_tokenizer,
      " with --tokenizer. If the folder was adopted under another name for the same tokenizer, remove its "
      "meta.json and adopt it with --tokenizer ",
      std::string(tokenizer->name())));
}

}  // namespace atl
