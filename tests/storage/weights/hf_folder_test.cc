#include "storage/weights/hf_folder.h"

#include "common/file.h"
#include "core/float_bits.h"
#include "core/hf/config_file.h"
#include "core/hf/tensor_match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/weights/model_files.h"
#include "tests/common/test_dir.h"
#include "tests/storage/weights/sample_model.h"

namespace atl {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

/// The values of the folder's model, parallel to layout.tensors, by way of everything that an import checks.
std::vector<std::vector<float>> ReadBack(const std::string& folder, const HfLayout& layout) {
  const auto files = ModelFiles::Open(folder);
  EXPECT_TRUE(files.ok()) << files.status();
  if (!files.ok()) return {};
  const absl::Status config = CheckHfConfig(files->config()->text, layout, "config.json");
  EXPECT_TRUE(config.ok()) << config;
  const auto match = MatchTensors(layout, files->found(), folder);
  EXPECT_TRUE(match.ok()) << match.status();
  if (!match.ok()) return {};
  EXPECT_TRUE(CheckValues(layout, *match).ok()) << CheckValues(layout, *match);
  std::vector<std::vector<float>> values;
  for (size_t i = 0; i < layout.tensors.size(); ++i) {
    ReadValues(layout, *match, i,
               values.emplace_back(match->tensors[i].found.entry->bytes.size() /
                                   BytesPerValue(match->tensors[i].dtype)));
  }
  return values;
}

class HfFolderTest : public testing::Test {
 protected:
  std::vector<std::string> Write(const HfFolderContents& contents) {
    const auto written = WriteHfFolder(dir_.path(), contents);
    EXPECT_TRUE(written.ok()) << written.status();
    return written.ok() ? *written : std::vector<std::string>();
  }

  const TestDir dir_;
};

TEST_F(HfFolderTest, AnImportOfAnExportHasTheSameBits) {
  const SampleModel model;
  EXPECT_THAT(Write(model.Contents()),
              ElementsAre("model.safetensors", "config.json", "generation_config.json"));
  EXPECT_EQ(ReadBack(dir_.path(), model.layout), model.values);
  const auto files = ModelFiles::Open(dir_.path());
  EXPECT_EQ(files->contents().metadata.at("format"), "pt");
}

TEST_F(HfFolderTest, SeveralFilesHaveAnIndex) {
  const SampleModel model;
  HfFolderContents contents = model.Contents();
  contents.shard_bytes = 1500;
  contents.metadata["atoll_version"] = "7";
  const std::vector<std::string> written = Write(contents);
  EXPECT_THAT(written, Contains("model.safetensors.index.json"));
  EXPECT_GT(written.size(), 5u);
  EXPECT_EQ(ReadBack(dir_.path(), model.layout), model.values);
  EXPECT_EQ(ReadBack(dir_.File("model.safetensors.index.json"), model.layout), model.values);
  EXPECT_EQ(ModelFiles::Open(dir_.path())->contents().metadata.at("atoll_version"), "7");
  for (const std::string& name : written) {
    if (!name.starts_with("model-")) continue;
    EXPECT_LE(FileSize(dir_.File(name)).value(), 1500 + 2000u) << name;
  }
}

TEST_F(HfFolderTest, TooManyFilesAreRejected) {
  GptOptions options = SampleModel::Options();
  options.layers = 100;
  options.width = 2;
  const SampleModel model(options);
  HfFolderContents contents = model.Contents();
  contents.shard_bytes = 1;
  EXPECT_THAT(WriteHfFolder(dir_.path(), contents).status().ToString(),
              HasSubstr("--shard-bytes 1 would make 1204 files, and 1024 are read"));
  EXPECT_THAT(ListDir(dir_.path()).value(), SizeIs(0));
}

TEST_F(HfFolderTest, ValuesAreRoundedToNearest) {
  const SampleModel model;
  for (const FileDtype dtype : {FileDtype::kBf16, FileDtype::kF16}) {
    const TestDir dir;
    HfFolderContents contents = model.Contents();
    contents.dtype = dtype;
    ASSERT_TRUE(WriteHfFolder(dir.path(), contents).ok());
    std::vector<std::vector<float>> expected = model.values;
    for (std::vector<float>& tensor : expected) {
      for (float& value : tensor) {
        value = dtype == FileDtype::kF16 ? FloatFromFp16(Fp16FromFloat(value))
                                         : FloatFromBf16(Bf16FromFloat(value));
      }
    }
    EXPECT_EQ(ReadBack(dir.path(), model.layout), expected);
    EXPECT_NE(expected, model.values);
    EXPECT_THAT(ReadFile(dir.File("config.json")).value(), HasSubstr(TorchName(dtype)));
  }
}

TEST_F(HfFolderTest, AValueBeyondTheTypeIsRejectedNamingTheTensor) {
  const SampleModel model(SampleModel::Options(), 1e5F);
  HfFolderContents contents = model.Contents();
  contents.dtype = FileDtype::kF16;
  const auto written = WriteHfFolder(dir_.path(), contents);
  EXPECT_EQ(written.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(
      std::string(written.status().message()),
      HasSubstr("tensor 'transformer.wte.weight' has the value 84147.1, which float16 cannot hold; choose "
                "another --dtype"));
}

// transformers has biases always: they are zeros, in every type, and an import takes them for what they are.
TEST_F(HfFolderTest, AModelWithoutBiasesHasZeros) {
  GptOptions options = SampleModel::Options();
  options.bias = false;
  const SampleModel model(options);
  Write(model.Contents());
  const SampleModel with_biases;
  const auto values = ReadBack(dir_.path(), with_biases.layout);
  ASSERT_EQ(values.size(), with_biases.layout.tensors.size());
  size_t biases = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!with_biases.layout.tensors[i].name.ends_with(".bias")) continue;
    EXPECT_EQ(values[i], std::vector<float>(values[i].size())) << with_biases.layout.tensors[i].name;
    ++biases;
  }
  EXPECT_EQ(biases, model.layout.zeros.size());
  EXPECT_EQ(ReadBack(dir_.path(), model.layout), model.values);
}

TEST_F(HfFolderTest, AHeadOfItsOwnIsWritten) {
  GptOptions options = SampleModel::Options();
  options.tied_embeddings = false;
  const SampleModel model(options);
  Write(model.Contents());
  EXPECT_EQ(ReadBack(dir_.path(), model.layout), model.values);
  EXPECT_THAT(ReadFile(dir_.File("config.json")).value(), HasSubstr("\"tie_word_embeddings\": false"));
}

TEST_F(HfFolderTest, TransposedTensorsLieTheOtherWayRound) {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  HfFolderContents contents;
  contents.layout.tensors = {{.name = "w", .shape = {3, 2}, .transposed = true}};
  contents.tensors = {values};
  Write(contents);
  const auto files = ModelFiles::Open(dir_.File("model.safetensors"));
  ASSERT_TRUE(files.ok()) << files.status();
  std::vector<float> in_file(6);
  WidenValues(files->contents().tensors[0].bytes, FileDtype::kF32, in_file);
  EXPECT_THAT(in_file, ElementsAre(1, 4, 2, 5, 3, 6)) << "the run's tensor is [2, 3]";
  EXPECT_EQ(ReadBack(dir_.path(), contents.layout)[0], values);
}

TEST_F(HfFolderTest, TheTokenizersFilesAreCopied) {
  const SampleModel model;
  HfFolderContents contents = model.Contents();
  contents.tokenizer.files = {{.name = "merges.txt", .contents = "a b\n"}};
  contents.tokenizer.ids = {.begin = 3, .ends = {4}};
  EXPECT_THAT(Write(contents), Contains("merges.txt"));
  EXPECT_EQ(ReadFile(dir_.File("merges.txt")).value(), "a b\n");
  EXPECT_THAT(ReadFile(dir_.File("generation_config.json")).value(), HasSubstr("\"eos_token_id\": 4"));
  EXPECT_THAT(ReadFile(dir_.File("config.json")).value(), HasSubstr("\"bos_token_id\": 3"));
}

}  // namespace
}  // namespace atl
