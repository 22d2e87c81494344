#include "worker/data/dataset.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/file.h"
#include "common/status.h"
#include "worker/data/token_layout.h"

namespace atl {
namespace {

constexpr char kMakeAgain[] =
    "copy the file again, or remove meta.json and run 'atoll-data tokenize' or 'atoll-data adopt' again";

absl::Status NoDescription(const std::string& folder) {
  std::string problem = absl::StrCat("dataset folder ", folder, ": no meta.json");
  const absl::StatusOr<std::vector<std::string>> names = ListDir(folder);
  if (!names.ok()) {
    return {names.status().code(),
            absl::StrCat("cannot read the token files: ", std::string(names.status().message()))};
  }
  for (const std::string& name : *names) {
    if (!IsTokenFileName(name)) continue;
    return absl::NotFoundError(
        absl::StrCat(problem, ". For shards of another program, name their tokenizer once: atoll-data adopt ",
                     folder, " --tokenizer gpt2 --vocabulary 50257"));
  }
  // tokenize writes into no folder of other files.
  const std::string out = names->empty() ? folder : JoinPath(folder, "tokens");
  return absl::NotFoundError(
      absl::StrCat(problem, names->empty() ? "" : " and no token files",
                   "; make a dataset with: atoll-data tokenize --tokenizer bytes --out ", out,
                   " FILE..., and give that folder"));
}

absl::Status CheckDescription(const std::string& folder, const DatasetDescription& description,
                              const DatasetRequirements& requirements) {
  if (!requirements.tokenizer.empty() && description.tokenizer != requirements.tokenizer) {
    return absl::InvalidArgumentError(absl::StrCat("dataset folder ", folder, ": made by tokenizer '",
                                                   description.tokenizer, "', but data.tokenizer is '",
                                                   requirements.tokenizer, "'; name another folder or set ",
                                                   "data.tokenizer: ", description.tokenizer));
  }
  if (description.vocabulary > requirements.vocabulary) {
    return absl::InvalidArgumentError(absl::StrCat(
        "dataset folder ", folder, ": its tokenizer's vocabulary is ", description.vocabulary, ", but ",
        requirements.section, ".vocabulary is ", requirements.vocabulary, "; set it to at least that"));
  }
  return absl::OkStatus();
}

absl::StatusOr<TokenFile> OpenEntry(const std::string& folder, const TokenFileEntry& entry,
                                    uint32_t vocabulary) {
  ATOLL_ASSIGN_OR_RETURN(TokenFile file, TokenFile::Open(JoinPath(folder, entry.name), vocabulary));
  const uint64_t expected = entry.whole() ? entry.tokens : entry.file_tokens;
  if (expected != file.tokens().size()) {
    return absl::InvalidArgumentError(absl::StrFormat("token file %s: %d tokens, but meta.json says %d; %s",
                                                      file.path(), file.tokens().size(), expected,
                                                      kMakeAgain));
  }
  if (entry.first > expected || entry.tokens > expected - entry.first) {
    return absl::InvalidArgumentError(
        absl::StrFormat("token file %s: meta.json lists tokens %d to %d of %d; %s", file.path(), entry.first,
                        entry.first + entry.tokens, expected, kMakeAgain));
  }
  if (!entry.whole()) file.Keep(entry.first, entry.tokens);
  return file;
}

absl::Status CheckLength(const std::string& what, uint64_t tokens, const DatasetRequirements& model) {
  if (tokens > model.context) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("%s: %d tokens are too few for one sample of %s.context + 1 = %d", what, tokens,
                      model.section, uint64_t{model.context} + 1));
}

absl::Status CheckFiles(const std::string& folder, const Dataset& dataset, const DatasetRequirements& model) {
  if (model.context == 0 || dataset.Samples(model.context, model.sequences).size() > 0)
    return absl::OkStatus();
  uint64_t longest = 0;
  for (const TokenFile& file : dataset.train_files()) longest = std::max(longest, file.size());
  return absl::InvalidArgumentError(absl::StrFormat(
      "training text in %s: its longest file has %d tokens, and a sample of %s.context + 1 = %d tokens must "
      "lie in one file (data.sequences: within_files); write longer files with 'atoll-data merge %s --out "
      "FOLDER', or set data.sequences: across_files in a new run",
      folder, longest, model.section, uint64_t{model.context} + 1, folder));
}

}  // namespace

absl::StatusOr<Dataset> Dataset::Open(const std::string& folder, const DatasetRequirements& requirements) {
  const std::string meta = JoinPath(folder, "meta.json");
  if (!FileExists(meta)) return NoDescription(folder);
  ATOLL_ASSIGN_OR_RETURN(const std::string json, ReadFile(meta, uint64_t{16} << 20));
  ATOLL_ASSIGN_OR_RETURN(DatasetDescription description, DescriptionFromJson(meta, json));
  ATOLL_RETURN_IF_ERROR(CheckDescription(folder, description, requirements));
  std::vector<TokenFile> train;
  for (const TokenFileEntry& entry : description.train) {
    ATOLL_ASSIGN_OR_RETURN(TokenFile file, OpenEntry(folder, entry, requirements.vocabulary));
    train.push_back(std::move(file));
  }
  ATOLL_ASSIGN_OR_RETURN(TokenFile validation,
                         OpenEntry(folder, description.validation, requirements.vocabulary));
  Dataset dataset(std::move(description), std::move(train), std::move(validation));
  ATOLL_RETURN_IF_ERROR(
      CheckLength(absl::StrCat("training text in ", folder), dataset.train_tokens(), requirements));
  ATOLL_RETURN_IF_ERROR(CheckFiles(folder, dataset, requirements));
  ATOLL_RETURN_IF_ERROR(
      CheckLength(absl::StrCat("held-out text in ", folder), dataset.validation_tokens(), requirements));
  return dataset;
}

Dataset::Dataset(DatasetDescription description, std::vector<TokenFile> train, TokenFile validation)
    : description_(std::move(description)), train_(std::move(train)), validation_(std::move(validation)) {
  for (const TokenFile& file : train_) {
    starts_.push_back(train_tokens_);
    train_tokens_ += file.size();
  }
}

absl::Status Dataset::VerifyContents(const std::function<bool()>& go_on) const {
  const auto verify = [&](const TokenFile& file, const TokenFileEntry& entry) -> absl::Status {
    ATOLL_ASSIGN_OR_RETURN(const std::string digest, file.Digest(go_on));
    if (digest == entry.sha256) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "token file ", file.path(),
        ": the SHA-256 of its tokens (the bytes behind the header) is not the one in meta.json; ",
        kMakeAgain));
  };
  for (size_t i = 0; i < train_.size(); ++i) ATOLL_RETURN_IF_ERROR(verify(train_[i], description_.train[i]));
  return verify(validation_, description_.validation);
}

int64_t Dataset::ModifiedNanos() const {
  int64_t latest = validation_.ModifiedNanos();
  for (const TokenFile& file : train_) latest = std::max(latest, file.ModifiedNanos());
  return latest;
}

SampleIndex Dataset::Samples(uint32_t context, SequenceBounds bounds) const {
  std::vector<uint64_t> tokens;
  for (const TokenFile& file : train_) tokens.push_back(file.size());
  return {tokens, context, bounds};
}

absl::Status Dataset::ReadTrain(uint64_t begin, std::span<TokenId> out) const {
  size_t file =
      static_cast<size_t>(std::upper_bound(starts_.begin(), starts_.end(), begin) - starts_.begin()) - 1;
  while (!out.empty()) {
    const uint64_t first = begin - starts_[file];
    const size_t size = std::min<uint64_t>(train_[file].size() - first, out.size());
    ATOLL_RETURN_IF_ERROR(train_[file].Read(first, out.first(size)));
    out = out.subspan(size);
    begin += size;
    ++file;
  }
  return absl::OkStatus();
}

absl::Status Dataset::ReadValidation(uint64_t begin, std::span<TokenId> out) const {
  return validation_.Read(begin, out);
}

}  // namespace atl
