#include "worker/data/training_data.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/file.h"
#include "common/status.h"

namespace atl {
namespace {

constexpr uint64_t kMaxDescriptionBytes = uint64_t{16} << 20;

std::string PartPath(const std::string& mixture, const std::string& folder) {
  return folder.starts_with('/') ? folder : JoinPath(mixture, folder);
}

absl::StatusOr<Dataset> OpenPart(const std::string& mixture, const MixturePart& part,
                                 const DatasetRequirements& requirements) {
  const std::string path = PartPath(mixture, part.folder);
  if (!FileExists(path)) {
    return absl::NotFoundError(absl::StrFormat(
        "mixture %s: its dataset %s is missing at %s; copy it there, or make the mixture again with "
        "'atoll-data mix'",
        mixture, part.folder, path));
  }
  absl::StatusOr<Dataset> dataset = Dataset::Open(path, requirements);
  if (!dataset.ok()) {
    return absl::Status(dataset.status().code(),
                        absl::StrCat("mixture ", mixture, ": ", std::string(dataset.status().message())));
  }
  if (dataset->fingerprint() == part.fingerprint) return dataset;
  return absl::FailedPreconditionError(absl::StrFormat(
      "mixture %s: the dataset %s was changed: its fingerprint is %s, and the mixture was made of %s; put "
      "the old dataset back, or make the mixture again with 'atoll-data mix'",
      mixture, path, dataset->fingerprint().substr(0, 12), part.fingerprint.substr(0, 12)));
}

}  // namespace

std::optional<TokenId> CommonEndOfText(const std::vector<const DatasetDescription*>& descriptions) {
  for (const DatasetDescription* const description : descriptions) {
    if (description->end_of_text != descriptions.front()->end_of_text) return std::nullopt;
  }
  return descriptions.front()->end_of_text;
}

absl::StatusOr<TrainingData> TrainingData::Open(const std::string& folder,
                                                const DatasetRequirements& requirements) {
  const std::string meta = JoinPath(folder, "meta.json");
  if (FileExists(meta)) {
    ATOLL_ASSIGN_OR_RETURN(const std::string json, ReadFile(meta, kMaxDescriptionBytes));
    ATOLL_ASSIGN_OR_RETURN(const std::optional<MixtureDescription> mixture, MixtureFromJson(meta, json));
    if (mixture) return OpenMixture(folder, *mixture, requirements);
  }
  ATOLL_ASSIGN_OR_RETURN(Dataset dataset, Dataset::Open(folder, requirements));
  std::string fingerprint = dataset.fingerprint();
  std::vector<Part> parts;
  parts.push_back({.folder = folder, .dataset = std::move(dataset), .weight = 1});
  return TrainingData(std::move(parts), std::move(fingerprint));
}

absl::StatusOr<TrainingData> TrainingData::OpenMixture(const std::string& folder,
                                                       const MixtureDescription& mixture,
                                                       const DatasetRequirements& requirements) {
  std::vector<Part> parts;
  for (const MixturePart& part : mixture.parts) {
    ATOLL_ASSIGN_OR_RETURN(Dataset dataset, OpenPart(folder, part, requirements));
    parts.push_back({.folder = part.folder, .dataset = std::move(dataset), .weight = part.weight});
  }
  return TrainingData(std::move(parts), mixture.fingerprint);
}

TrainingData::TrainingData(std::vector<Part> parts, std::string fingerprint)
    : parts_(std::move(parts)), fingerprint_(std::move(fingerprint)) {
  std::vector<const DatasetDescription*> descriptions;
  for (const Part& part : parts_) descriptions.push_back(&part.dataset.description());
  end_of_text_ = CommonEndOfText(descriptions);
}

uint64_t TrainingData::train_tokens() const {
  uint64_t tokens = 0;
  for (const Part& part : parts_) tokens += part.dataset.train_tokens();
  return tokens;
}

std::vector<TextShare> TrainingData::shares() const {
  double weights = 0;
  for (const Part& part : parts_) weights += part.weight;
  std::vector<TextShare> shares;
  for (const Part& part : parts_) {
    shares.push_back({.name = is_mixture() ? part.folder : "",
                      .tokens = part.dataset.train_tokens(),
                      .share = part.weight / weights});
  }
  return shares;
}

absl::Status TrainingData::VerifyContents(const std::function<bool()>& go_on) const {
  for (const Part& part : parts_) ATOLL_RETURN_IF_ERROR(part.dataset.VerifyContents(go_on));
  return absl::OkStatus();
}

int64_t TrainingData::ModifiedNanos() const {
  int64_t latest = 0;
  for (const Part& part : parts_) latest = std::max(latest, part.dataset.ModifiedNanos());
  return latest;
}

}  // namespace atl
