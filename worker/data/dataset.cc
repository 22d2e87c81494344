#include "worker/data/dataset.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/digest.h"
#include "common/file.h"
#include "common/status.h"

namespace atoll {
namespace {

std::string TokensSha256(const TokenFile& file) {
  Sha256 digest;
  digest.Update(std::as_bytes(file.tokens()));
  return digest.FinishHex();
}

// Names only; tokens and digests are filled in when the files are open.
absl::StatusOr<DatasetDescription> DescribeFolder(const std::string& folder, uint32_t vocabulary) {
  ATOLL_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDir(folder));
  DatasetDescription description;
  description.tokenizer = "unknown";
  description.vocabulary = vocabulary;
  for (const std::string& name : names) {
    if (!name.ends_with(".bin")) continue;
    if (name.find("train") != std::string::npos) description.train.push_back({name, 0, ""});
    if (name.find("val") != std::string::npos) description.validation.name = name;
  }
  if (description.train.empty() || description.validation.name.empty()) {
    return absl::NotFoundError(
        absl::StrCat("dataset folder ", folder,
                     ": no meta.json, and no pair of *train*.bin and *val*.bin; make one with: "
                     "atoll-data tokenize --tokenizer bytes --out ",
                     folder, " FILE..."));
  }
  return description;
}

absl::Status CheckDescription(const std::string& folder, const DatasetDescription& description,
                              const DatasetRequirements& requirements) {
  if (!requirements.tokenizer.empty() && description.tokenizer != "unknown" &&
      description.tokenizer != requirements.tokenizer) {
    return absl::InvalidArgumentError(absl::StrCat("dataset folder ", folder, ": made by tokenizer '",
                                                   description.tokenizer, "', but data.tokenizer is '",
                                                   requirements.tokenizer, "'"));
  }
  if (description.vocabulary > requirements.vocabulary) {
    return absl::InvalidArgumentError(
        absl::StrCat("dataset folder ", folder, ": its tokenizer's vocabulary is ", description.vocabulary,
                     ", but model.gpt.vocabulary is ", requirements.vocabulary, "; set it to at least that"));
  }
  return absl::OkStatus();
}

absl::StatusOr<TokenFile> OpenEntry(const std::string& folder, TokenFileEntry& entry, bool described,
                                    uint32_t vocabulary) {
  ATOLL_ASSIGN_OR_RETURN(TokenFile file, TokenFile::Open(JoinPath(folder, entry.name), vocabulary));
  if (!described) {
    entry.tokens = file.tokens().size();
    entry.sha256 = TokensSha256(file);
  } else if (entry.tokens != file.tokens().size()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("token file %s: %d tokens, but meta.json says %d; tokenise the text again",
                        file.path(), file.tokens().size(), entry.tokens));
  }
  return file;
}

absl::Status CheckLength(const std::string& what, uint64_t tokens, uint32_t context) {
  if (tokens > context) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("%s: %d tokens are too few for one sample of model.gpt.context + 1 = %d", what, tokens,
                      uint64_t{context} + 1));
}

}  // namespace

absl::StatusOr<Dataset> Dataset::Open(const std::string& folder, const DatasetRequirements& requirements) {
  const std::string meta = JoinPath(folder, "meta.json");
  const bool described = FileExists(meta);
  DatasetDescription description;
  if (described) {
    ATOLL_ASSIGN_OR_RETURN(const std::string json, ReadFile(meta, uint64_t{16} << 20));
    ATOLL_ASSIGN_OR_RETURN(description, DescriptionFromJson(meta, json));
  } else {
    ATOLL_ASSIGN_OR_RETURN(description, DescribeFolder(folder, requirements.vocabulary));
  }
  ATOLL_RETURN_IF_ERROR(CheckDescription(folder, description, requirements));
  std::vector<TokenFile> train;
  for (TokenFileEntry& entry : description.train) {
    ATOLL_ASSIGN_OR_RETURN(TokenFile file, OpenEntry(folder, entry, described, requirements.vocabulary));
    train.push_back(std::move(file));
  }
  ATOLL_ASSIGN_OR_RETURN(TokenFile validation,
                         OpenEntry(folder, description.validation, described, requirements.vocabulary));
  if (!described) description.fingerprint = Fingerprint(description);
  Dataset dataset(std::move(description), std::move(train), std::move(validation));
  ATOLL_RETURN_IF_ERROR(
      CheckLength(absl::StrCat("training text in ", folder), dataset.train_tokens(), requirements.context));
  ATOLL_RETURN_IF_ERROR(CheckLength(absl::StrCat("held-out text in ", folder), dataset.validation().size(),
                                    requirements.context));
  return dataset;
}

Dataset::Dataset(DatasetDescription description, std::vector<TokenFile> train, TokenFile validation)
    : description_(std::move(description)), train_(std::move(train)), validation_(std::move(validation)) {
  for (const TokenFile& file : train_) {
    starts_.push_back(train_tokens_);
    train_tokens_ += file.tokens().size();
  }
}

absl::Status Dataset::VerifyContents() const {
  const auto verify = [](const TokenFile& file, const TokenFileEntry& entry) {
    if (TokensSha256(file) == entry.sha256) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("token file ", file.path(),
                     ": its tokens are not those that meta.json describes; tokenise the text again"));
  };
  for (size_t i = 0; i < train_.size(); ++i) ATOLL_RETURN_IF_ERROR(verify(train_[i], description_.train[i]));
  return verify(validation_, description_.validation);
}

void Dataset::ReadTrain(uint64_t begin, std::span<uint16_t> out) const {
  size_t file =
      static_cast<size_t>(std::upper_bound(starts_.begin(), starts_.end(), begin) - starts_.begin()) - 1;
  while (!out.empty()) {
    const std::span<const uint16_t> rest = train_[file].tokens().subspan(begin - starts_[file]);
    const size_t size = std::min(rest.size(), out.size());
    std::copy_n(rest.begin(), size, out.begin());
    out = out.subspan(size);
    begin += size;
    ++file;
  }
}

}  // namespace atoll
