#include "storage/weights/model_files.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/file.h"
#include "common/status.h"
#include "core/foreign_name.h"
#include "core/hf/config_file.h"
#include "core/hf/shard_index.h"

namespace atl {
namespace {

constexpr char kConfigFile[] = "config.json";
constexpr char kIndexEnd[] = ".safetensors.index.json";
constexpr char kPickledFile[] = "pytorch_model.bin";

bool IsFolder(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

/// Also for a link that leads nowhere, which is then told when it is opened.
bool IsThere(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(std::filesystem::symlink_status(path, error));
}

std::string FolderOf(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  return parent.empty() ? "." : parent.string();
}

absl::Status NoWeights(const std::string& folder) {
  std::string advice = absl::StrCat("; name the folder that holds ", kHfWeightsFile);
  if (IsThere(JoinPath(folder, kPickledFile))) {
    advice = absl::StrCat("; it has ", kPickledFile,
                          ", which cannot be read: load it with transformers and save it with "
                          "save_pretrained(safe_serialization=True)");
  }
  const auto names = ListDir(folder);
  if (!names.ok()) return names.status();
  const auto other =
      std::ranges::find_if(*names, [](const std::string& name) { return name.ends_with(".safetensors"); });
  if (other != names->end()) {
    advice = absl::StrCat("; if you mean ", ForeignName(*other), ", name that file");
  }
  return absl::NotFoundError(
      absl::StrFormat("%s has neither %s nor %s%s", folder, kHfWeightsFile, kHfIndexFile, advice));
}

}  // namespace

bool IsModelFolder(const std::string& path) { return path.ends_with(kIndexEnd) || IsFolder(path); }

absl::StatusOr<ModelFiles> ModelFiles::Open(const std::string& path) {
  ModelFiles files;
  if (!IsModelFolder(path)) {
    ATOLL_RETURN_IF_ERROR(files.AddFile(path, nullptr));
    return files;
  }
  const bool folder = IsFolder(path);
  const std::string whole = JoinPath(path, kHfWeightsFile);
  const std::string index = folder ? JoinPath(path, kHfIndexFile) : path;
  if (folder && IsThere(whole)) {  // transformers prefers it, too
    ATOLL_RETURN_IF_ERROR(files.AddFile(whole, nullptr));
  } else if (!folder || IsThere(index)) {
    ATOLL_RETURN_IF_ERROR(files.AddIndexed(index));
  } else {
    return NoWeights(path);
  }
  ATOLL_RETURN_IF_ERROR(files.ReadConfig(folder ? path : FolderOf(path)));
  return files;
}

std::vector<FoundTensor> ModelFiles::found() const {
  std::vector<FoundTensor> found;
  for (size_t i = 0; i < contents_.tensors.size(); ++i) {
    found.push_back({.entry = &contents_.tensors[i], .file = maps_[files_[i]].path()});
  }
  return found;
}

absl::Status ModelFiles::ReadConfig(const std::string& folder) {
  const std::string path = JoinPath(folder, kConfigFile);
  auto text = ReadFile(path, kMaxHfConfigBytes);
  if (text.ok()) {
    config_ = {.path = path, .text = *std::move(text)};
    return absl::OkStatus();
  }
  if (!absl::IsNotFound(text.status())) return text.status();
  return absl::NotFoundError(absl::StrFormat(
      "%s is missing: without it, nothing says how many heads the model has; to import tensors without this "
      "comparison, name a safetensors file",
      path));
}

absl::Status ModelFiles::AddIndexed(const std::string& index) {
  ATOLL_ASSIGN_OR_RETURN(const std::string text, ReadFile(index, kMaxHfIndexBytes));
  ATOLL_ASSIGN_OR_RETURN(const ShardIndex shards, ParseShardIndex(text, index));
  for (const auto& [file, tensors] : shards) {
    const absl::Status added = AddFile(JoinPath(FolderOf(index), file), &tensors);
    if (absl::IsNotFound(added)) {
      return absl::NotFoundError(
          absl::StrFormat("%s; %s says that %d of the model's tensors are there, from '%s' on: copy or "
                          "download all files of the model",
                          std::string(added.message()), index, tensors.size(), ForeignName(tensors.front())));
    }
    ATOLL_RETURN_IF_ERROR(added);
  }
  return absl::OkStatus();
}

absl::Status ModelFiles::AddFile(const std::string& path, const std::vector<std::string>* expected) {
  ATOLL_ASSIGN_OR_RETURN(MappedFile map, MappedFile::Open(path, AccessPattern::kSequential));
  ATOLL_ASSIGN_OR_RETURN(SafetensorsFile file, ParseSafetensors(map.bytes(), path));
  if (expected != nullptr) {
    std::vector<std::string> names;
    for (const SafetensorsEntry& entry : file.tensors) names.push_back(entry.name);
    std::ranges::sort(names);  // `expected` comes from a sorted object
    const auto [found, indexed] = std::ranges::mismatch(names, *expected);
    const bool missing = indexed != expected->end() && (found == names.end() || *indexed < *found);
    if (missing) {
      return absl::InvalidArgumentError(
          absl::StrFormat("%s: tensor '%s' is missing; the index says that it is here%s", path,
                          ForeignName(*indexed), NearName(*indexed, names)));
    }
    if (found != names.end()) {
      return absl::InvalidArgumentError(
          absl::StrFormat("%s: tensor '%s' is here, and the index does not say so%s", path,
                          ForeignName(*found), NearName(*found, *expected)));
    }
  }
  if (contents_.tensors.size() + file.tensors.size() > kMaxTensors) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s: with the files before it, the model has more than %d tensors", path, kMaxTensors));
  }
  if (maps_.empty()) contents_.metadata = std::move(file.metadata);
  files_.insert(files_.end(), file.tensors.size(), maps_.size());
  std::ranges::move(file.tensors, std::back_inserter(contents_.tensors));
  maps_.push_back(std::move(map));
  return absl::OkStatus();
}

}  // namespace atl
