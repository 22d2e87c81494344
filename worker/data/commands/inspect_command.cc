#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/command_line/help.h"
#include "common/file.h"
#include "common/printable.h"
#include "common/status.h"
#include "tokenizer/utf8.h"
#include "worker/data/commands/command.h"
#include "worker/data/commands/output.h"
#include "worker/data/commands/tokenizer_flag.h"
#include "worker/data/dataset.h"
#include "worker/data/training_data.h"

namespace atl {
namespace {

constexpr char kInspectHelp[] =
    "Check every file of a dataset folder and show tokenizer, tokens, fingerprint and the first words";
constexpr uint64_t kFirstTokens = 72;
constexpr uint64_t kMaxDescriptionBytes = uint64_t{16} << 20;

struct InspectFlags {
  std::string folder;
  TokenizerFlag tokenizer;
};

/// Bytes of the character that this byte begins; 0 for one that continues a character.
size_t CharacterBytes(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  if (byte < 0x80) return 1;
  if (byte < 0xc0) return 0;
  return byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
}

/// Without the rest of a character at the front and the beginning of one at the end: tokens may cut them.
std::string_view WholeCharacters(std::string_view text) {
  for (int i = 0; i < 3 && !text.empty() && CharacterBytes(text.front()) == 0; ++i) text.remove_prefix(1);
  for (size_t kept = 1; kept <= std::min<size_t>(3, text.size()); ++kept) {
    const size_t bytes = CharacterBytes(text[text.size() - kept]);
    if (bytes == 0) continue;
    if (bytes > kept) text.remove_suffix(kept);
    break;
  }
  return text;
}

/// For one line of a terminal: valid UTF-8 with spaces for control characters.
std::string FirstWords(std::string_view decoded) {
  std::string text;
  AppendReplaced(WholeCharacters(decoded), text);
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return Printable(text);
}

/// How often the token stands in a view.
uint64_t Count(const TokenView& tokens, TokenId token) {
  return tokens.VisitAs([&](const auto& typed) {
    return static_cast<uint64_t>(std::ranges::count_if(typed, [&](auto t) { return t == token; }));
  });
}

/// The first words of a dataset.
absl::Status PrintBeginning(const Dataset& dataset, const Tokenizer& tokenizer) {
  std::vector<TokenId> first(std::min<uint64_t>(kFirstTokens, dataset.train_tokens()));
  ATOLL_RETURN_IF_ERROR(dataset.ReadTrain(0, first));
  absl::PrintF("begins with  %s\n", FirstWords(tokenizer.Decode(first)));
  first.resize(std::min<uint64_t>(kFirstTokens, dataset.validation_tokens()));
  ATOLL_RETURN_IF_ERROR(dataset.ReadValidation(0, first));
  absl::PrintF("held out     %s\n", FirstWords(tokenizer.Decode(first)));
  return absl::OkStatus();
}

/// Each dataset of a mixture, if the folder is one.
absl::StatusOr<bool> InspectMixture(const InspectFlags& flags) {
  const std::string& folder = flags.folder;
  const std::string meta = JoinPath(folder, "meta.json");
  if (!FileExists(meta)) return false;
  ATOLL_ASSIGN_OR_RETURN(const std::string json, ReadFile(meta, kMaxDescriptionBytes));
  ATOLL_ASSIGN_OR_RETURN(const std::optional<MixtureDescription> mixture, MixtureFromJson(meta, json));
  if (!mixture) return false;
  ATOLL_ASSIGN_OR_RETURN(const TrainingData data, TrainingData::Open(folder, {kMaxVocabulary, 1, ""}));
  ATOLL_RETURN_IF_ERROR(data.VerifyContents([] { return true; }));
  PrintMixture(folder, *mixture);
  const absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer = TokenizerOf(data.tokenizer(), flags.tokenizer);
  if (!tokenizer.ok()) {
    if (flags.tokenizer.name.empty()) return true;
    return tokenizer.status();
  }
  for (const TrainingData::Part& part : data.parts()) {
    absl::PrintF("\n%s\n", part.folder);
    ATOLL_RETURN_IF_ERROR(PrintBeginning(part.dataset, **tokenizer));
  }
  return true;
}

absl::Status RunInspect(const InspectFlags& flags) {
  ATOLL_ASSIGN_OR_RETURN(const bool mixture, InspectMixture(flags));
  if (mixture) return absl::OkStatus();
  ATOLL_ASSIGN_OR_RETURN(const Dataset dataset, Dataset::Open(flags.folder, {kMaxVocabulary, 1, ""}));
  ATOLL_RETURN_IF_ERROR(dataset.VerifyContents());
  const DatasetDescription& description = dataset.description();
  PrintDescription(flags.folder, description);
  for (const TokenFile& file : dataset.train_files()) {
    if (file.format() == "llm.c") continue;
    absl::PrintF("format       %s\n", std::string(file.format()));
    break;
  }
  if (description.end_of_text) {
    uint64_t documents = 0;
    for (const TokenFile& file : dataset.train_files())
      documents += Count(file.tokens(), *description.end_of_text);
    absl::PrintF("documents    %d in training, %d held out (token %d ends them)\n", documents,
                 Count(dataset.validation(), *description.end_of_text), *description.end_of_text);
  }
  const absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer =
      TokenizerOf(description.tokenizer, flags.tokenizer);
  if (!tokenizer.ok()) return flags.tokenizer.name.empty() ? absl::OkStatus() : tokenizer.status();
  return PrintBeginning(dataset, **tokenizer);
}

}  // namespace

DataCommand AddInspectCommand(CLI::App& app) {
  CLI::App* const inspect = app.add_subcommand("inspect", kInspectHelp);
  const auto flags = std::make_shared<InspectFlags>();
  inspect->add_option("folder", flags->folder, "Dataset folder or mixture")->required();
  flags->tokenizer.AddTo(*inspect);
  SetHelp(*inspect, {.examples = {{"atoll-data inspect data/book"},
                                  {"atoll-data inspect data/book --tokenizer gpt2/tokenizer.json"}},
                     .exit_codes = {ExitCode::kStorage, ExitCode::kBadFiles}});
  return {inspect, [flags] { return RunInspect(*flags); }};
}

}  // namespace atl
