#include <string>

#include "core/hf/config_file.h"
#include "core/hf/gpt2_layout.h"
#include "core/hf/model_of_config.h"
#include "core/hf/shard_index.h"
#include "core/manifest.h"
#include "tests/fuzz/targets.h"

namespace atl::fuzz {
namespace {

HfLayout SmallLayout() {
  GptOptions options;
  options.layers = 2;
  options.heads = 2;
  options.width = 8;
  options.context = 4;
  options.vocabulary = 16;
  return Gpt2Layout(options);
}

}  // namespace

// config.json or generation_config.json.
void FuzzHfConfig(FuzzInput in) {
  const std::string text = in.RestText();
  static const HfLayout layout = SmallLayout();
  static_cast<void>(CheckHfConfig(text, layout, "input"));
  const HfTokenIds ids = TokenIdsOf(text, 16);
  for (const int64_t id : ids.ends) ATOLL_FUZZ_REQUIRE(id >= 0 && id < 16);
  ATOLL_FUZZ_REQUIRE(!ids.begin || (*ids.begin >= 0 && *ids.begin < 16));
  const std::string written = HfConfigText(layout, FileDtype::kBf16, ids);
  ATOLL_FUZZ_REQUIRE(CheckHfConfig(written, layout, "written").ok());
  ATOLL_FUZZ_REQUIRE(TokenIdsOf(written, 16) == ids);
  const auto model = ModelOfHfConfig(text, "input");
  if (!model.ok()) return;
  const std::string again = HfConfigText(*HfLayoutOf(*model), FileDtype::kF32, {});
  ATOLL_FUZZ_REQUIRE(ModelOfHfConfig(again, "again").ok());
}

// model.safetensors.index.json.
void FuzzShardIndex(FuzzInput in) {
  const auto index = ParseShardIndex(in.RestText(), "input");
  if (!index.ok()) return;
  ATOLL_FUZZ_REQUIRE(!index->empty() && index->size() <= kMaxHfShards);
  std::vector<Shard> shards;
  std::vector<std::string> names;
  for (const auto& [file, tensors] : *index) {
    ATOLL_FUZZ_REQUIRE(file.find('/') == std::string::npos && file.find('\0') == std::string::npos);
    ATOLL_FUZZ_REQUIRE(!file.empty() && file != "." && file != ".." && !tensors.empty());
    Shard& shard = shards.emplace_back(Shard{.file = file, .tensors = {}});
    for (const std::string& tensor : tensors) {
      ATOLL_FUZZ_REQUIRE(!tensor.empty() && tensor.size() <= kMaxTensorName);
      shard.tensors.push_back(names.size());
      names.push_back(tensor);
    }
  }
  const std::vector<uint64_t> bytes(names.size(), 1);
  const auto again = ParseShardIndex(ShardIndexText(shards, names, bytes), "again");
  ATOLL_FUZZ_REQUIRE(again.ok() && *again == *index);
}

}  // namespace atl::fuzz
