#include "worker/app/load_safetensors.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "common/file.h"
#include "core/safetensors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/sync/fake_replica.h"

namespace atl {
namespace {

using ::testing::HasSubstr;

class LoadSafetensorsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/atoll-safetensors-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    folder_ = name;
  }
  void TearDown() override { EXPECT_TRUE(RemoveAll(folder_).ok()); }

  /// A file of this manifest with every value 0.25.
  std::string Write(const Manifest& manifest) {
    const std::vector<float> values(manifest.elements(), 0.25F);
    std::string bytes = SafetensorsHeader(manifest, {});
    bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    const std::string path = JoinPath(folder_, "model.safetensors");
    EXPECT_TRUE(WriteFileAtomically(path, bytes).ok());
    return path;
  }

  absl::Status Load(const std::string& path) {
    return LoadSafetensors(path, PlainLayout(replica_.manifest()), replica_);
  }

  std::string folder_;
  FakeReplica replica_{5.0F};
};

TEST_F(LoadSafetensorsTest, FillsTheModel) {
  const absl::Status loaded = Load(Write(FakeReplica::MakeManifest()));
  ASSERT_TRUE(loaded.ok()) << loaded;
  EXPECT_EQ(replica_.first(), 0.25F);
}

TEST_F(LoadSafetensorsTest, AFileOfMoreTensorsInAnotherOrderServes) {
  Manifest manifest = FakeReplica::MakeManifest();
  manifest.tensors.push_back({.name = "extra", .shape = {3}, .embedding = false});
  std::swap(manifest.tensors[0], manifest.tensors[2]);
  EXPECT_TRUE(Load(Write(manifest)).ok());
  EXPECT_EQ(replica_.first(), 0.25F);
}

TEST_F(LoadSafetensorsTest, WhatDoesNotFitIsNamed) {
  Manifest renamed = FakeReplica::MakeManifest();
  renamed.tensors[1].name = "other";
  const absl::Status missing = Load(Write(renamed));
  EXPECT_EQ(missing.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(missing.message()), HasSubstr("model.safetensors: tensor 'bias' is missing"));

  Manifest transposed = FakeReplica::MakeManifest();
  transposed.tensors[0].shape = {15, 20};
  const absl::Status shape = Load(Write(transposed));
  EXPECT_THAT(std::string(shape.message()),
              HasSubstr("'weight' has shape [15, 20]; the model of the configuration has [20, 15]"));
  EXPECT_EQ(replica_.first(), 1.0F) << "nothing was changed";
}

TEST_F(LoadSafetensorsTest, AFileThatIsNotThereIsNotFound) {
  EXPECT_EQ(Load(folder_ + "/nowhere").code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace atl
