#include "core/manifest.h"

#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace atl {
namespace {

using testing::HasSubstr;

Manifest Example() {
  return {{{.name = "wte", .shape = {256, 128}, .embedding = true},
           {.name = "ln.weight", .shape = {128}},
           {.name = "scale"}}};
}

TEST(Manifest, CountsElements) {
  EXPECT_EQ(Example().elements(), 256u * 128 + 128 + 1);
  EXPECT_TRUE(ValidateManifest(Example()).ok());
}

TEST(Manifest, HashIsThatOfTheCanonicalText) {
  // printf 'wte 256 128 embedding\nln.weight 128\nscale\n' | sha256sum
  EXPECT_EQ(ManifestHash(Example()), "e96cfaed9c5340e86d6d93ebc6296aad68d013f2ba6c89ed62ed23156e8b1da2");
}

TEST(Manifest, HashSeesEverything) {
  Manifest renamed = Example(), reshaped = Example(), reordered = Example(), plain = Example();
  renamed.tensors[1].name = "ln.bias";
  reshaped.tensors[0].shape = {128, 256};
  std::swap(reordered.tensors[0], reordered.tensors[1]);
  plain.tensors[0].embedding = false;
  for (const Manifest& other : {renamed, reshaped, reordered, plain}) {
    EXPECT_NE(ManifestHash(other), ManifestHash(Example()));
  }
}

struct Bad {
  TensorSpec tensor;
  std::string message;
};

TEST(Manifest, RejectsWhatIsNoTensorAndSaysWhich) {
  const int64_t huge = std::numeric_limits<int64_t>::max();
  const Bad cases[] = {
      {{.name = "", .shape = {2}}, "tensor 3 has no name"},
      {{.name = "wte", .shape = {2}}, "two tensors are named wte"},
      {{.name = "a b", .shape = {2}}, "character outside printable ASCII"},
      {{.name = "a\n", .shape = {2}}, "character outside printable ASCII"},
      {{.name = "\xc3\xa4", .shape = {2}}, "character outside printable ASCII"},
      {{.name = std::string(513, 'x'), .shape = {2}}, "has 513 bytes"},
      {{.name = "x", .shape = {2, 0}}, "tensor x has a dimension of 0 in [2, 0]"},
      {{.name = "x", .shape = {-1}}, "dimension of -1"},
      {{.name = "x", .shape = std::vector<int64_t>(9, 1)}, "9 dimensions"},
      {{.name = "x", .shape = {huge, huge}}, "more than"},
      {{.name = "x", .shape = {int64_t{1} << 32, int64_t{1} << 32}}, "more than"},
      {{.name = "x", .shape = {int64_t{1} << 40}}, "with tensor x the model has more than"},
  };
  for (const Bad& bad : cases) {
    Manifest manifest = Example();
    manifest.tensors.push_back(bad.tensor);
    const absl::Status status = ValidateManifest(manifest);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bad.message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(bad.message));
  }
  EXPECT_FALSE(ValidateManifest({}).ok());
}

}  // namespace
}  // namespace atl
