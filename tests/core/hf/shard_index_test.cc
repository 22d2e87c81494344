#include "core/hf/shard_index.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace atl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

std::string Problem(const std::string& text) {
  const auto index = ParseShardIndex(text, "index.json");
  EXPECT_FALSE(index.ok()) << text;
  return std::string(index.status().message());
}

TEST(ShardIndex, NamesTheTensorsOfEachFile) {
  const auto index = ParseShardIndex(R"({"metadata": {"total_size": 12}, "weight_map":
      {"b": "m-2.safetensors", "c": "m-1.safetensors", "a": "m-2.safetensors"}})",
                                     "index.json");
  ASSERT_TRUE(index.ok()) << index.status();
  EXPECT_THAT(*index, ElementsAre(Pair("m-1.safetensors", ElementsAre("c")),
                                  Pair("m-2.safetensors", ElementsAre("a", "b"))));
}

TEST(ShardIndex, FilesOutsideItsFolderAreRejected) {
  for (const char* const file : {"../m.safetensors", "/etc/m.safetensors", "a/m.safetensors", "", "..", ".",
                                 "m.bin", "a\\u0000/m.safetensors", "./m.safetensors"}) {
    EXPECT_THAT(Problem(absl::StrCat(R"({"weight_map": {"a": ")", file, R"("}})")),
                AllOf(HasSubstr("index.json: tensor 'a' is in "), HasSubstr("in the folder of the index")))
        << file;
  }
  EXPECT_THAT(Problem(R"({"weight_map": {"a": 1}})"), HasSubstr("tensor 'a' is in 1, which is not"));
}

TEST(ShardIndex, OtherContentsAreRejected) {
  EXPECT_EQ(Problem("{"), "index.json: is not JSON");
  EXPECT_THAT(Problem("[]"), HasSubstr("index.json: has no object 'weight_map'"));
  EXPECT_THAT(Problem("{}"), HasSubstr("has no object 'weight_map'"));
  EXPECT_THAT(Problem(R"({"weight_map": ["a"]})"), HasSubstr("has no object 'weight_map'"));
  EXPECT_EQ(Problem(R"({"weight_map": {}})"), "index.json: names no tensor");
  EXPECT_THAT(Problem(R"({"weight_map": {"": "m.safetensors"}})"), HasSubstr("empty or overlong name"));
  EXPECT_THAT(Problem(absl::StrCat(R"({"weight_map": {")", std::string(600, 'x'), R"(": "m.safetensors"}})")),
              HasSubstr("empty or overlong name"));
  EXPECT_THAT(Problem(R"({"weight_map": {"a": "m.safetensors", "a": "n.safetensors"}})"),
              HasSubstr("names 'a' twice"));
  std::string many = R"({"weight_map": {"a": "a.safetensors")";
  for (size_t i = 0; i < kMaxHfShards; ++i) absl::StrAppend(&many, ",\"t", i, "\":\"m", i, ".safetensors\"");
  EXPECT_EQ(Problem(many + "}}"), "index.json: names more than 1024 files");
}

TEST(PlanShards, OneFileIfAllFits) {
  const auto shards = PlanShards(std::vector<uint64_t>{4, 4, 2}, 10);
  ASSERT_EQ(shards.size(), 1u);
  EXPECT_EQ(shards[0].file, "model.safetensors");
  EXPECT_THAT(shards[0].tensors, ElementsAre(0, 1, 2));
}

TEST(PlanShards, FillsFilesInOrder) {
  const auto shards = PlanShards(std::vector<uint64_t>{4, 4, 3, 20, 1, 9}, 10);
  ASSERT_EQ(shards.size(), 4u);
  EXPECT_EQ(shards[0].file, "model-00001-of-00004.safetensors");
  EXPECT_THAT(shards[0].tensors, ElementsAre(0, 1));
  EXPECT_THAT(shards[1].tensors, ElementsAre(2));
  EXPECT_THAT(shards[2].tensors, ElementsAre(3)) << "too large for any file";
  EXPECT_THAT(shards[3].tensors, ElementsAre(4, 5));
}

TEST(ShardIndex, ReadsBackWhatItWrote) {
  const std::vector<uint64_t> bytes = {6, 6, 4};
  const std::vector<std::string> names = {"z", "b", "a"};
  const auto shards = PlanShards(bytes, 10);
  const std::string text = ShardIndexText(shards, names, bytes);
  EXPECT_THAT(text, HasSubstr("\"total_size\": 16"));
  const auto index = ParseShardIndex(text, "index.json");
  ASSERT_TRUE(index.ok()) << index.status();
  EXPECT_THAT(*index, ElementsAre(Pair("model-00001-of-00002.safetensors", ElementsAre("z")),
                                  Pair("model-00002-of-00002.safetensors", ElementsAre("a", "b"))));
}

}  // namespace
}  // namespace atl
