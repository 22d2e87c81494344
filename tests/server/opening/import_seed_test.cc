#include "server/opening/import_seed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/file.h"
#include "core/float_bits.h"
#include "core/model_shape.h"
#include "core/safetensors.h"
#include "storage/weights/hf_folder.h"
#include "tests/common/test_dir.h"
#include "tests/storage/weights/sample_model.h"

namespace atl {
namespace {

using testing::HasSubstr;

class ImportSeedTest : public testing::Test {
 protected:
  ImportSeedTest() {
    manifest_.tensors = {{.name = "a", .shape = {3, 4}}, {.name = "b", .shape = {5}}};
    layouts_ = PlanFragments(manifest_, 1).value();
  }
  /// A file of these entries, each filled with its dtype's form of 0.5, 1.5, ...
  std::string Write(const std::vector<std::tuple<std::string, std::string, std::string, size_t>>& entries) {
    std::string header = "{";
    std::string data;
    for (const auto& [name, dtype, shape, count] : entries) {
      const size_t begin = data.size();
      for (size_t i = 0; i < count; ++i) {
        const float value = 0.5F + static_cast<float>(i);
        const uint16_t half = dtype == "F16" ? Fp16FromFloat(value) : Bf16FromFloat(value);
        if (dtype == "F32") data.append(reinterpret_cast<const char*>(&value), 4);
        if (dtype == "F16" || dtype == "BF16") data.append(reinterpret_cast<const char*>(&half), 2);
        if (dtype == "I8") data.push_back('\1');
      }
      absl::StrAppend(&header, header.size() > 1 ? "," : "", "\"", name, "\":{\"dtype\":\"", dtype,
                      "\",\"shape\":", shape, ",\"data_offsets\":[", begin, ",", data.size(), "]}");
    }
    header += "}";
    uint64_t length = header.size();
    std::string file(8, '\0');
    std::memcpy(file.data(), &length, 8);
    const std::string path = dir_.File("model.safetensors");
    EXPECT_TRUE(WriteFileAtomically(path, file + header + data).ok());
    return path;
  }
  std::string Error(const std::string& path) {
    const auto read = ReadSafetensors(path, manifest_, layouts_);
    EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument);
    return read.status().ToString();
  }

  const TestDir dir_;
  Manifest manifest_;
  std::vector<FragmentLayout> layouts_;
};

TEST_F(ImportSeedTest, AllThreeTypesAreWidenedInAnyOrder) {
  for (const char* dtype : {"F32", "F16", "BF16"}) {
    const auto read =
        ReadSafetensors(Write({{"b", "F32", "[5]", 5}, {"a", dtype, "[3,4]", 12}}), manifest_, layouts_);
    ASSERT_TRUE(read.ok()) << read.status();
    const auto values = (*read)[0].values();
    const FragmentLayout& layout = layouts_[0];
    for (size_t i = 0; i < 12; ++i)
      EXPECT_EQ(values[layout.slots[0].offset + i], 0.5F + static_cast<float>(i));
    for (size_t i = 0; i < 5; ++i)
      EXPECT_EQ(values[layout.slots[1].offset + i], 0.5F + static_cast<float>(i));
    EXPECT_EQ(values[layout.slots[0].offset + 12], 0) << "gaps are zero";
  }
}

TEST_F(ImportSeedTest, WhatDoesNotFitIsRejectedNamingTheTensor) {
  EXPECT_THAT(Error(Write({{"a", "F32", "[3,4]", 12}})), HasSubstr("tensor 'b' is missing"));
  EXPECT_THAT(Error(Write({{"a", "F32", "[4,3]", 12}, {"b", "F32", "[5]", 5}})), HasSubstr("[4, 3]"));
  EXPECT_THAT(Error(Write({{"a", "F32", "[3,4]", 12}, {"b", "F32", "[5]", 5}, {"c", "F32", "[1]", 1}})),
              HasSubstr("tensor 'c' is not in the model"));
  EXPECT_THAT(Error(Write({{"a", "I8", "[3,4]", 12}, {"b", "F32", "[5]", 5}})), HasSubstr("I8"));
}

TEST_F(ImportSeedTest, AnExternalModelIsThatOfTheFile) {
  CoordinatorOptions options;
  options.fragments = 1;
  options.run.model = ModelOptions(ExternalOptions());
  options.import_path = Write({{"b", "BF16", "[5]", 5}, {"a", "F32", "[3,4]", 12}});
  EXPECT_TRUE(CheckImport(options.import_path, options.run).ok());
  const auto seed = ReadImport(options);
  ASSERT_TRUE(seed.ok()) << seed.status();
  ASSERT_TRUE(seed->has_value());
  const Manifest expected{{{.name = "b", .shape = {5}}, {.name = "a", .shape = {3, 4}}}};
  EXPECT_EQ((*seed)->manifest, expected);
  EXPECT_EQ((*seed)->buffers[0].values()[4], 4.5F);
  options.run.model.external()->parameters = 18;
  for (const absl::Status& other :
       {CheckImport(options.import_path, options.run), ReadImport(options).status()}) {
    EXPECT_THAT(other.ToString(), HasSubstr("model.external.parameters is 18, and the model has 17"));
  }
}

/// A run of the sample model, and a folder that it is exported to.
class ImportFolderTest : public testing::Test {
 protected:
  ImportFolderTest() {
    options_.fragments = 2;
    options_.run.model = SampleModel::Options();
    options_.import_path = dir_.path();
    EXPECT_TRUE(WriteHfFolder(dir_.path(), model_.Contents()).ok());
  }
  /// That of a check before the data directory is made, and of the import itself: they are the same.
  std::string Error() {
    const absl::Status checked = CheckImport(options_.import_path, options_.run);
    EXPECT_EQ(ReadImport(options_).status(), checked);
    return checked.ToString();
  }

  const TestDir dir_;
  const SampleModel model_;
  CoordinatorOptions options_;
};

TEST_F(ImportFolderTest, AFolderOfTransformersSeedsARun) {
  ASSERT_EQ(Error(), "OK");
  const auto seed = ReadImport(options_);
  ASSERT_TRUE(seed.ok()) << seed.status();
  EXPECT_EQ((*seed)->manifest, ManifestOf(options_.run.model).value());
  ASSERT_EQ((*seed)->buffers.size(), 2u);
  for (size_t f = 0; f < 2; ++f) {
    for (const TensorSlot& slot : (*seed)->layouts[f].slots) {
      const auto values = (*seed)->buffers[f].values().subspan(slot.offset, slot.elements);
      EXPECT_THAT(values, testing::ElementsAreArray(model_.values[slot.tensor]));
    }
  }
}

TEST_F(ImportFolderTest, AConfigurationThatContradictsIsRejected) {
  GptOptions other = SampleModel::Options();
  other.heads = 4;  // no tensor shows it
  options_.run.model = other;
  EXPECT_THAT(Error(),
              HasSubstr(dir_.File("config.json") + ": n_head is 2; the run has 4 (model.gpt.heads)"));
  options_.import_path = dir_.File("model.safetensors");
  EXPECT_EQ(Error(), "OK") << "a file has no configuration";
}

// Also what only the values show is found before the data directory is made.
TEST_F(ImportFolderTest, ValuesAreCheckedBeforeAnythingIsMade) {
  SampleModel broken;
  broken.values[3][5] = std::numeric_limits<float>::infinity();
  const TestDir dir;
  ASSERT_TRUE(WriteHfFolder(dir.path(), broken.Contents()).ok());
  options_.import_path = dir.path();
  EXPECT_THAT(Error(), HasSubstr("tensor 'transformer.h.0.ln_1.bias' has a value that is not finite, at 5"));
}

TEST_F(ImportFolderTest, ARunWithoutBiasesTakesZerosOnly) {
  GptOptions plain = SampleModel::Options();
  plain.bias = false;
  options_.run.model = plain;
  EXPECT_THAT(Error(), HasSubstr("does not have this tensor, so all of it must be zero"));
  const SampleModel without(plain);
  const TestDir dir;
  ASSERT_TRUE(WriteHfFolder(dir.path(), without.Contents()).ok());
  options_.import_path = dir.path();
  EXPECT_EQ(Error(), "OK");
}

TEST_F(ImportFolderTest, AnExternalModelIsThatOfTheFolder) {
  options_.run.model = ModelOptions(ExternalOptions());
  EXPECT_EQ(Error(), "OK");
  EXPECT_EQ((*ReadImport(options_))->manifest.tensors.size(), model_.layout.tensors.size());
}

}  // namespace
}  // namespace atl
