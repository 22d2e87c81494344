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

Manifest WithStatistics() {
  Manifest manifest = Example();
  manifest.tensors.push_back({.name = "ln.running_mean", .shape = {128}, .averaged = true});
  return manifest;
}

TEST(Manifest, AveragedTensorsArePartOfTheHash) {
  // printf 'wte 256 128 embedding\nln.weight 128\nscale\nln.running_mean 128 averaged\n' | sha256sum
  EXPECT_EQ(ManifestHash(WithStatistics()),
            "03dfad8e16598890af5585de9060313cf4798dcfa32bb614fbf14e129896fdf0");
  Manifest trained = WithStatistics();
  trained.tensors[3].averaged = false;
  EXPECT_NE(ManifestHash(trained), ManifestHash(WithStatistics()));
  EXPECT_EQ(WithStatistics().FirstAveraged()->name, "ln.running_mean");
  EXPECT_EQ(Example().FirstAveraged(), nullptr);
}

TEST(Manifest, DifferencesOfAveragedTensorsAreNamed) {
  const Manifest run = WithStatistics();
  EXPECT_EQ(DifferenceFromRun(run, Example()),
            "tensor 'ln.running_mean' is missing, and has shape [128] in the run, which averages it: this "
            "worker must exchange its buffers too; in Python buffers=\"mean\"");
  EXPECT_EQ(DifferenceFromRun(Example(), run),
            "averaged tensor 'ln.running_mean' of shape [128] is not in the run");
  Manifest trained = run;
  trained.tensors[3].averaged = false;
  EXPECT_EQ(DifferenceFromRun(run, trained),
            "tensor 'ln.running_mean' is an ordinary parameter, and an averaged tensor in the run");
  trained.tensors[3].embedding = true;
  EXPECT_EQ(DifferenceFromRun(trained, run),
            "tensor 'ln.running_mean' is an averaged tensor, and an embedding in the run");
}

TEST(Manifest, NoTensorIsBothAnEmbeddingAndAveraged) {
  Manifest manifest = WithStatistics();
  EXPECT_TRUE(ValidateManifest(manifest).ok());
  manifest.tensors[3].embedding = true;
  EXPECT_THAT(std::string(ValidateManifest(manifest).message()),
              HasSubstr("tensor ln.running_mean is both an embedding and averaged"));
}

Manifest OverBase(const std::string& fingerprint) {
  Manifest manifest = Example();
  manifest.base_fingerprint = fingerprint;
  return manifest;
}

TEST(Manifest, HashHasALineForFrozenParameters) {
  // printf 'wte 256 128 embedding\nln.weight 128\nscale\nbase 0123456789abcdef\n' | sha256sum
  EXPECT_EQ(ManifestHash(OverBase("0123456789abcdef")),
            "84daa49c7de96990adef539e48b4a7a8a2824997b94709d2c327e378084f686b");
  EXPECT_NE(ManifestHash(OverBase("0123456789abcdef")), ManifestHash(OverBase("0123456789abcdee")));
}

TEST(Manifest, AFingerprintIsOneWordOfSomeLength) {
  EXPECT_TRUE(ValidateManifest(OverBase("0123456789abcdef")).ok());
  EXPECT_TRUE(ValidateManifest(OverBase(std::string(128, 'f'))).ok());
  // Shorter, it could read like the dimension of a tensor named "base".
  for (const std::string& bad : {std::string("42"), std::string("0123456789abcde"), std::string(129, 'f'),
                                 std::string("0123456789 abcdef"), std::string("0123456789abcdef\n")}) {
    EXPECT_THAT(std::string(ValidateManifest(OverBase(bad)).message()), HasSubstr("base_fingerprint"));
  }
}

TEST(Manifest, TheFirstDifferenceIsNamed) {
  const Manifest run = OverBase("0123456789abcdef");
  EXPECT_EQ(DifferenceFromRun(run, run), "");
  Manifest other = run;
  other.tensors[1].shape = {64, 2};
  EXPECT_EQ(DifferenceFromRun(run, other), "tensor 'ln.weight' has shape [64, 2], and [128] in the run");
  other = run;
  other.tensors[0].embedding = false;
  EXPECT_EQ(DifferenceFromRun(run, other), "tensor 'wte' is not an embedding, and is one in the run");
  EXPECT_EQ(DifferenceFromRun(other, run), "tensor 'wte' is an embedding, and is not one in the run");
  other = run;
  other.tensors.pop_back();
  EXPECT_EQ(DifferenceFromRun(run, other), "tensor 'scale' is missing, and has shape [] in the run");
  EXPECT_EQ(DifferenceFromRun(other, run), "tensor 'scale' of shape [] is not in the run");
  other = run;
  std::swap(other.tensors[0], other.tensors[1]);
  EXPECT_EQ(DifferenceFromRun(run, other),
            "tensor 0 is 'ln.weight', and 'wte' in the run: the order differs");
  EXPECT_EQ(DifferenceFromRun(run, OverBase("fedcba9876543210")),
            "the frozen parameters differ: base_fingerprint is fedcba9876543210, and 0123456789abcdef in the "
            "run");
  EXPECT_EQ(DifferenceFromRun(run, Example()),
            "the frozen parameters differ: base_fingerprint is none, and 0123456789abcdef in the run");
}

TEST(Manifest, TheTensorInThePlaceOfAMissingOneIsNamed) {
  const Manifest run = Example();
  Manifest other = run;
  for (TensorSpec& tensor : other.tensors) tensor.name = "model." + tensor.name;
  std::swap(other.tensors[0], other.tensors[2]);
  EXPECT_EQ(DifferenceFromRun(run, other),
            "tensor 'wte' is missing, and has shape [256, 128] in the run; this worker has 'model.wte' of "
            "shape [256, 128] in its place");
  EXPECT_THAT(DifferenceFromRun(other, run), HasSubstr("; this worker has 'scale' of shape [] in its place"));
  other = run;
  other.tensors[1].name = "norm";
  EXPECT_THAT(DifferenceFromRun(run, other),
              HasSubstr("; this worker has 'norm' of shape [128] in its place"));
  other.tensors[1].shape = {64};
  EXPECT_EQ(DifferenceFromRun(run, other), "tensor 'ln.weight' is missing, and has shape [128] in the run");
  other = run;
  other.tensors[1].name = "myln.weight";
  other.tensors[1].shape = {64};
  EXPECT_EQ(DifferenceFromRun(run, other), "tensor 'ln.weight' is missing, and has shape [128] in the run");
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
      {{.name = "__metadata__", .shape = {2}}, "which safetensors files reserve"},
      {{.name = "a b", .shape = {2}}, "tensor 3, 'a b', has a space or"},
      {{.name = "a\n", .shape = {2}}, "'a\\n', has a space or a character outside printable ASCII"},
      {{.name = "\xc3\xa4", .shape = {2}}, "'\\xc3\\xa4', has a space or a character outside"},
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
