#include "core/hf/shard_index.h"

#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/bounded_json.h"
#include "core/foreign_name.h"
#include "core/manifest.h"

namespace atl {
namespace {

// A name and a value per tensor, and some metadata.
constexpr JsonBounds kIndexBounds = {.depth = 4, .values = 2 * kMaxTensors + 1000};
constexpr size_t kMaxFileName = 255;
constexpr char kFileEnd[] = ".safetensors";

absl::Status WrongIndex(std::string_view source, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(std::string(source), ": ", what));
}

/// Whether it can only be a file of the index's own folder.
bool IsPlainName(std::string_view name) {
  return name.size() <= kMaxFileName && name.ends_with(kFileEnd) &&
         name.find('/') == std::string_view::npos && name.find('\0') == std::string_view::npos;
}

}  // namespace

absl::StatusOr<ShardIndex> ParseShardIndex(std::string_view text, std::string_view source) {
  const auto json = ParseBoundedJson(text, kIndexBounds);
  if (!json.ok()) return WrongIndex(source, std::string(json.status().message()));
  if (!json->is_object() || !json->contains("weight_map") || !(*json)["weight_map"].is_object()) {
    return WrongIndex(source, "has no object 'weight_map', which names the file of each tensor");
  }
  ShardIndex index;
  for (const auto& [tensor, file] : (*json)["weight_map"].items()) {
    if (tensor.empty() || tensor.size() > kMaxTensorName) {
      return WrongIndex(source,
                        absl::StrFormat("tensor '%s' has an empty or overlong name", ForeignName(tensor)));
    }
    if (!file.is_string() || !IsPlainName(file.get_ref<const std::string&>())) {
      const std::string shown = file.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
      return WrongIndex(source,
                        absl::StrFormat("tensor '%s' is in %s, which is not the name of a safetensors file "
                                        "in the folder of the index",
                                        ForeignName(tensor), ForeignName(shown)));
    }
    index[file.get<std::string>()].push_back(tensor);
    if (index.size() > kMaxHfShards) {
      return WrongIndex(source, absl::StrFormat("names more than %d files", kMaxHfShards));
    }
  }
  if (index.empty()) return WrongIndex(source, "names no tensor");
  return index;
}

std::vector<Shard> PlanShards(std::span<const uint64_t> bytes, uint64_t shard_bytes) {
  std::vector<Shard> shards(1);
  uint64_t filled = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const bool full = bytes[i] > shard_bytes || filled > shard_bytes - bytes[i];
    if (full && !shards.back().tensors.empty()) {
      shards.emplace_back();
      filled = 0;
    }
    shards.back().tensors.push_back(i);
    filled += bytes[i];
  }
  shards.front().file = kHfWeightsFile;
  for (size_t i = 0; i < shards.size() && shards.size() > 1; ++i) {
    shards[i].file = absl::StrFormat("model-%05d-of-%05d.safetensors", i + 1, shards.size());
  }
  return shards;
}

std::string ShardIndexText(std::span<const Shard> shards, std::span<const std::string> names,
                           std::span<const uint64_t> bytes) {
  nlohmann::json json;
  json["metadata"]["total_size"] = std::accumulate(bytes.begin(), bytes.end(), uint64_t{0});
  for (const Shard& shard : shards) {
    for (const size_t tensor : shard.tensors) json["weight_map"][names[tensor]] = shard.file;
  }
  return json.dump(2) + "\n";
}

}  // namespace atl
