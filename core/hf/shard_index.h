#ifndef ATOLL_CORE_HF_SHARD_INDEX_H_
#define ATOLL_CORE_HF_SHARD_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

// model.safetensors.index.json: which tensor is in which of several files.

namespace atl {

inline constexpr char kHfWeightsFile[] = "model.safetensors";
inline constexpr char kHfIndexFile[] = "model.safetensors.index.json";
inline constexpr uint64_t kMaxHfIndexBytes = uint64_t{64} << 20;
inline constexpr size_t kMaxHfShards = 1024;

/// The files of an index in the order of their names, each with its tensors.
using ShardIndex = std::map<std::string, std::vector<std::string>>;

/// InvalidArgument names `source`: it is not an index, has too many tensors or files, or names a file that is
/// not one of its own folder ("../x", "/x") or not a safetensors file.
absl::StatusOr<ShardIndex> ParseShardIndex(std::string_view text, std::string_view source);

/// The tensors that go into one file. Positions in the list that was planned.
struct Shard {
  std::string file;
  std::vector<size_t> tensors;
};

/// Puts tensors of these bytes into files in order, at most `shard_bytes` of tensors in each; a larger tensor
/// has a file of its own. One file is called model.safetensors, several model-00001-of-00002.safetensors.
std::vector<Shard> PlanShards(std::span<const uint64_t> bytes, uint64_t shard_bytes);

/// The contents of an index. `names` and `bytes` are of the planned tensors.
std::string ShardIndexText(std::span<const Shard> shards, std::span<const std::string> names,
                           std::span<const uint64_t> bytes);

}  // namespace atl

#endif  // ATOLL_CORE_HF_SHARD_INDEX_H_
