#include "atoll/v1/types.pb.h"
#include "common/status_detail.h"
#include "core/codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "protos/wire/codec.h"
#include "protos/wire/manifest.h"
#include "protos/wire/protocol.h"

namespace atl {
namespace {

TEST(WireTest, CodecsBothWays) {
  for (const CodecKind codec : kCodecKinds) {
    EXPECT_EQ(*CodecFromProto(CodecToProto(codec)), codec);
  }
}

TEST(WireTest, UnknownCodecIsRejected) {
  EXPECT_EQ(CodecFromProto(v1::CODEC_UNSPECIFIED).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(std::string(CodecFromProto(static_cast<v1::Codec>(99)).status().message()),
            "codec 99 is not known here; known are fp32 (1), fp16 (2), bf16 (3), int8 (4), int4 (5), "
            "e3m0 (6), int8_quantile (7), topk64 (8), topk128 (9), topk64_bf16 (10), topk128_bf16 (11)");
}

TEST(WireTest, ManifestBothWays) {
  const Manifest manifest{{{"wte", {256, 128}, true}, {"scale", {}, false}, {"h.0.w", {3, 4, 5}, false}}};
  for (const char* const base : {"", "0123456789abcdef"}) {
    Manifest over = manifest;
    over.base_fingerprint = base;
    const auto also = ManifestFromProto(ManifestToProto(over));
    ASSERT_TRUE(also.ok()) << also.status();
    EXPECT_EQ(*also, over);
  }
  const auto back = ManifestFromProto(ManifestToProto(manifest));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, manifest);
}

TEST(WireTest, ForeignManifestsAreValidated) {
  v1::Manifest proto;
  proto.add_tensors()->set_name("a");
  proto.mutable_tensors(0)->add_shape(-1);
  const auto negative = ManifestFromProto(proto);
  EXPECT_EQ(negative.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(negative.status().message()), ::testing::HasSubstr("a"));
  proto.mutable_tensors(0)->clear_shape();
  proto.add_tensors()->set_name("a");
  EXPECT_FALSE(ManifestFromProto(proto).ok());
  v1::Manifest huge;
  for (size_t i = 0; i <= kMaxTensors; ++i) huge.add_tensors();
  EXPECT_EQ(std::string(ManifestFromProto(huge).status().message()),
            "manifest has 65537 tensors; at most 65536 are allowed");
}

TEST(WireTest, ContentHashBothWays) {
  const ContentHash hash{0x0123456789abcdefu, 0xfedcba9876543210u};
  EXPECT_EQ(ContentHashFromProto(ContentHashToProto(hash)), hash);
}

TEST(WireTest, OnlyAnotherMajorIsRejected) {
  v1::ProtocolVersion theirs = OurProtocolVersion();
  theirs.set_minor(kProtocolMinor + 5);
  EXPECT_TRUE(CheckProtocolVersion(theirs, "worker").ok());
  theirs.set_major(kProtocolMajor + 1);
  const absl::Status newer = CheckProtocolVersion(theirs, "worker");
  EXPECT_EQ(newer.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(std::string(newer.message()),
            "the worker speaks protocol 2.6, this side 1.1: install the same release on both, the older one "
            "is this side");
  EXPECT_EQ(DetailOf(newer)->reason, "PROTOCOL_MISMATCH");
  EXPECT_THAT(std::string(CheckProtocolVersion({}, "coordinator").message()),
              ::testing::EndsWith("the older one is the coordinator"));
}

}  // namespace
}  // namespace atl
