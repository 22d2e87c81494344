#include "worker/data/mix.h"

#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/file.h"
#include "common/status.h"
#include "core/mixture_order.h"
#include "core/token_format.h"
#include "worker/data/dataset.h"
#include "worker/data/output_folder.h"
#include "worker/data/training_data.h"

namespace atl {
namespace {

namespace fs = std::filesystem;

absl::Status CheckFolders(const std::vector<WeightedFolder>& folders) {
  if (folders.size() < 2) {
    return absl::InvalidArgumentError("a mixture has at least two datasets; name each as FOLDER=WEIGHT");
  }
  std::set<std::string> seen;
  for (const WeightedFolder& one : folders) {
    std::error_code error;
    const std::string path = fs::weakly_canonical(one.folder, error).string();
    if (!seen.insert(error ? one.folder : path).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(one.folder, " is named twice; name each dataset once, with the sum of its weights"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<uint32_t>> Weights(const std::vector<WeightedFolder>& folders) {
  std::vector<std::string> texts;
  for (const WeightedFolder& one : folders) texts.push_back(one.weight);
  return WholeWeights(texts);
}

/// The path of a dataset from the folder of the mixture on, which may not exist yet.
std::string PathFrom(const std::string& out, const std::string& folder) {
  std::error_code error;
  const fs::path to = fs::canonical(folder, error);
  const fs::path from = fs::weakly_canonical(fs::absolute(JoinPath(out, "")), error);
  const fs::path relative = error ? fs::path() : to.lexically_relative(from);
  return relative.empty() ? fs::absolute(folder).string() : relative.string();
}

absl::Status SameTokenizer(const WeightedFolder& first, const Dataset& of_first, const WeightedFolder& other,
                           const Dataset& of_other) {
  const DatasetDescription &a = of_first.description(), &b = of_other.description();
  if (a.tokenizer == b.tokenizer && a.vocabulary == b.vocabulary) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "dataset folder %s has the tokenizer %s (vocabulary %d), and %s has %s (vocabulary %d): a mixture has "
      "one tokenizer; tokenize one of the texts again",
      first.folder, a.tokenizer, a.vocabulary, other.folder, b.tokenizer, b.vocabulary));
}

absl::StatusOr<std::vector<Dataset>> OpenAll(const std::vector<WeightedFolder>& folders) {
  std::vector<Dataset> sets;
  for (const WeightedFolder& one : folders) {
    ATOLL_ASSIGN_OR_RETURN(Dataset set, Dataset::Open(one.folder, {kMaxVocabulary, 1, ""}));
    ATOLL_RETURN_IF_ERROR(SameTokenizer(folders.front(), sets.empty() ? set : sets.front(), one, set));
    sets.push_back(std::move(set));
  }
  return sets;
}

}  // namespace

absl::StatusOr<WeightedFolder> ParseWeightedFolder(const std::string& text) {
  const size_t at = text.find_last_of("=:");
  if (at == std::string::npos || at == 0 || at + 1 == text.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "': expected FOLDER=WEIGHT, for example data/web=0.7"));
  }
  return WeightedFolder{.folder = text.substr(0, at), .weight = text.substr(at + 1)};
}

absl::StatusOr<MixtureDescription> Mix(const std::vector<WeightedFolder>& folders, const std::string& out) {
  ATOLL_RETURN_IF_ERROR(CheckFolders(folders));
  ATOLL_ASSIGN_OR_RETURN(const std::vector<uint32_t> weights, Weights(folders));
  ATOLL_ASSIGN_OR_RETURN(const std::vector<Dataset> sets, OpenAll(folders));
  ATOLL_ASSIGN_OR_RETURN(OutputFolder output, OutputFolder::Create(out, PartialFolder::LeftOver::kRemove));
  std::vector<const DatasetDescription*> descriptions;
  for (const Dataset& set : sets) descriptions.push_back(&set.description());
  MixtureDescription mixture{.tokenizer = descriptions.front()->tokenizer,
                             .vocabulary = descriptions.front()->vocabulary,
                             .end_of_text = CommonEndOfText(descriptions),
                             .parts = {},
                             .fingerprint = ""};
  for (size_t i = 0; i < sets.size(); ++i) {
    mixture.parts.push_back({.folder = PathFrom(out, folders[i].folder),
                             .weight = weights[i],
                             .train_tokens = sets[i].train_tokens(),
                             .held_out_tokens = sets[i].validation_tokens(),
                             .fingerprint = sets[i].fingerprint()});
  }
  mixture.fingerprint = MixtureFingerprint(mixture);
  ATOLL_RETURN_IF_ERROR(WriteFileAtomically(JoinPath(output.partial(), "meta.json"), MixtureToJson(mixture)));
  ATOLL_RETURN_IF_ERROR(output.Publish());
  return mixture;
}

}  // namespace atl
