#include "core/safetensors.h"

#include <cstring>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace atl {
namespace {

using ::testing::HasSubstr;

Manifest TwoTensors() {
  return Manifest{{{.name = "wte", .shape = {4, 2}, .embedding = true}, {.name = "bias", .shape = {3}}}};
}

std::vector<std::byte> FileOf(const std::string& header, size_t floats) {
  std::vector<std::byte> file(header.size() + floats * sizeof(float));
  std::memcpy(file.data(), header.data(), header.size());
  for (size_t i = 0; i < floats; ++i) {
    const float value = static_cast<float>(i);
    std::memcpy(file.data() + header.size() + i * sizeof(float), &value, sizeof(float));
  }
  return file;
}

std::vector<std::byte> RawFile(const std::string& json, size_t data_bytes) {
  const uint64_t length = json.size();
  std::vector<std::byte> file(8 + json.size() + data_bytes);
  std::memcpy(file.data(), &length, 8);
  std::memcpy(file.data() + 8, json.data(), json.size());
  return file;
}

TEST(Safetensors, ReadsBackWhatItWrote) {
  const std::vector<std::byte> bytes = FileOf(SafetensorsHeader(TwoTensors(), {{"version", "7"}}), 11);
  const auto file = ParseSafetensors(bytes, "m.safetensors");
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(file->tensors.size(), 2u);
  EXPECT_EQ(file->tensors[0].name, "wte");
  EXPECT_EQ(file->tensors[0].shape, (std::vector<int64_t>{4, 2}));
  EXPECT_EQ(file->tensors[1].bytes.size(), 12u);
  float value = 0;
  std::memcpy(&value, file->tensors[1].bytes.data(), sizeof value);
  EXPECT_EQ(value, 8.0f);
  EXPECT_EQ(file->metadata.at("version"), "7");
}

TEST(Safetensors, KeepsTheManifest) {
  Manifest manifest = TwoTensors();
  manifest.base_fingerprint = "0123456789abcdef";
  const std::vector<std::byte> bytes = FileOf(SafetensorsHeader(manifest, ManifestMetadata(manifest)), 11);
  const auto file = ParseSafetensors(bytes, "m.safetensors");
  ASSERT_TRUE(file.ok()) << file.status();
  const auto back = ManifestOfFile(*file, "m.safetensors");
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, manifest);
  manifest.tensors.push_back({.name = "running_mean", .shape = {2}, .averaged = true});
  const std::vector<std::byte> averaging =
      FileOf(SafetensorsHeader(manifest, ManifestMetadata(manifest)), 13);
  EXPECT_EQ(ManifestOfFile(ParseSafetensors(averaging, "m.safetensors").value(), "m.safetensors").value(),
            manifest);
  const Manifest plain{{{.name = "a", .shape = {11}}}};
  EXPECT_TRUE(ManifestMetadata(plain).empty());
}

TEST(Safetensors, AManifestThatNoRunCanHaveIsRejected) {
  const auto rejection = [](const std::map<std::string, std::string>& metadata, const std::string& name) {
    const Manifest manifest{{{.name = name, .shape = {2}}}};
    const std::vector<std::byte> bytes = FileOf(SafetensorsHeader(manifest, metadata), 2);
    return ManifestOfFile(ParseSafetensors(bytes, "m.safetensors").value(), "m.safetensors").status();
  };
  EXPECT_TRUE(rejection({}, "w").ok());
  EXPECT_THAT(rejection({}, "w x").ToString(), HasSubstr("m.safetensors: manifest: the name of tensor 0"));
  EXPECT_THAT(rejection({{"base_fingerprint", "short"}}, "w").ToString(), HasSubstr("base_fingerprint"));
  for (const char* const list : {"{}", "[", "[[[[[[[1]]]]]]]"}) {
    EXPECT_THAT(rejection({{"embeddings", list}}, "w").ToString(), HasSubstr("not a list of names")) << list;
    EXPECT_THAT(rejection({{"averaged", list}}, "w").ToString(),
                HasSubstr("'averaged' is not a list of names"));
  }
  EXPECT_THAT(rejection({{"averaged", R"(["zzz"])"}}, "w").ToString(),
              HasSubstr("'averaged' lists 'zzz', which the file does not have"));
  EXPECT_THAT(rejection({{"averaged", "[1, 2]"}}, "w").ToString(),
              HasSubstr("'averaged' lists 1, which is no name"));
  EXPECT_THAT(rejection({{"averaged", R"(["w"])"}}, "w").ToString(),
              HasSubstr("'averaged' lists every tensor, from 'w' on"));
}

TEST(Safetensors, DataStartsAlignedForMapping) {
  EXPECT_EQ(SafetensorsHeader(TwoTensors(), {}).size() % 8, 0u);
  EXPECT_EQ(SafetensorsHeader(TwoTensors(), {{"a", "b"}}).size() % 8, 0u);
}

struct BadFile {
  const char* json;
  size_t data;
  const char* message;
};

TEST(Safetensors, RejectsHostileHeadersNamingTheTensor) {
  const BadFile cases[] = {
      {"", 0, "not a JSON object"},
      {"[1]", 0, "not a JSON object"},
      {" {}", 0, "not a JSON object"},
      {"{", 0, "its header is not JSON"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
       4, "names 'a' twice"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
       4, "gap or overlaps"},
      {R"({"__metadata__":{"a":1}})", 0, "something other than text"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,8]}})", 8,
       "tensor 'a' has a range that does not fit"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 4, "tensor 'a' reaches beyond the end"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4,
       "tensor 'a' has data_offsets that end before they begin"},
      {R"({"a":{"dtype":"F3","shape":[1],"data_offsets":[0,4]}})", 4, "unknown dtype 'F3'"},
      {R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4, "not a whole number"},
      {R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,4]}})", 4, "is too large"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8, "gap or overlaps"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 8, "extra bytes after the last tensor"},
      {R"({"a":{"shape":[1],"data_offsets":[0,4]}})", 4, "lacks dtype"},
      {R"({"a":[[[[[[1]]]]]]})", 0, "nested deeper than 4 levels"},
  };
  for (const BadFile& bad : cases) {
    const auto file = ParseSafetensors(RawFile(bad.json, bad.data), "bad.safetensors");
    ASSERT_FALSE(file.ok()) << bad.json;
    EXPECT_THAT(file.status().message(), HasSubstr(bad.message)) << bad.json;
    EXPECT_THAT(file.status().message(), HasSubstr("bad.safetensors"));
  }
}

TEST(Safetensors, AHeaderCostsNoMoreThanAModelOfTheLargestNumberOfTensors) {
  std::vector<std::byte> claim(8);
  const uint64_t length = kMaxSafetensorsHeader + 1;
  std::memcpy(claim.data(), &length, sizeof(length));
  EXPECT_THAT(ParseSafetensors(claim, "bad").status().message(), HasSubstr("claims 100000001 bytes"));
  std::string list = R"({"a":[0)";
  for (int i = 0; i < 2'000'000; ++i) list += ",0";
  EXPECT_THAT(ParseSafetensors(RawFile(list + "]}", 0), "bad").status().message(),
              HasSubstr("holds more than"));
  const std::string long_name(1'000'000, 'x');
  const auto named = ParseSafetensors(RawFile("{\"" + long_name + "\":{}}", 0), "bad");
  EXPECT_THAT(named.status().message(), HasSubstr("overlong name"));
  EXPECT_LT(named.status().message().size(), 300u);
}

TEST(Safetensors, WritesOtherDtypes) {
  const SafetensorsSpec specs[] = {{"a", "BF16", {2, 3}}, {"b", "F32", {}}};
  std::vector<std::byte> file = FileOf(SafetensorsHeader(specs, {}), 4);
  const auto parsed = ParseSafetensors(file, "m.safetensors");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->tensors[0].dtype, "BF16");
  EXPECT_EQ(parsed->tensors[0].bytes.size(), 12u);
  EXPECT_EQ(parsed->tensors[1].bytes.size(), 4u);
}

TEST(Safetensors, SurvivesRandomDamage) {
  const std::vector<std::byte> good = FileOf(SafetensorsHeader(TwoTensors(), {}), 11);
  std::mt19937 rng(7);
  for (int i = 0; i < 3000; ++i) {
    std::vector<std::byte> bytes = good;
    for (int k = 0; k < 3; ++k) bytes[rng() % bytes.size()] = static_cast<std::byte>(rng());
    if (rng() % 4 == 0) bytes.resize(rng() % bytes.size());
    const auto file = ParseSafetensors(bytes, "fuzz");
    if (!file.ok()) continue;
    for (const auto& tensor : file->tensors) {
      ASSERT_GE(tensor.bytes.data(), bytes.data());
      ASSERT_LE(tensor.bytes.data() + tensor.bytes.size(), bytes.data() + bytes.size());
    }
  }
}

}  // namespace
}  // namespace atl
