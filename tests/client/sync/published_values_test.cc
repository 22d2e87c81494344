#include "client/sync/published_values.h"

#include <gtest/gtest.h>

#include <cstring>

#include "common/content_hash.h"
#include "core/codec.h"
#include "core/delta.h"

namespace atl {
namespace {

constexpr size_t kElements = 1000;

ContentHash HashOf(const std::vector<float>& values) {
  const Hash128 hash = HashBytes(std::as_bytes(std::span(values)));
  return {.low = hash.low, .high = hash.high};
}

class LandTest : public testing::Test {
 protected:
  LandTest() : from_(kElements, 1), to_(kElements), theta_(kElements, 1.5F) {
    theta_[7] = 1.25F;
    payload_.resize(codec_.EncodedSize(kElements));
    EXPECT_TRUE(EncodeDelta(codec_, theta_, from_, 0, payload_, to_).ok());
    request_.call.have = Version(3);
    request_.delta_codec = CodecKind::kInt8;
    pulled_.version = pulled_.head = Version(4);
    pulled_.delta_base = Version(3);
    pulled_.published = HashOf(to_);
    payload_.resize(kElements * sizeof(float));  // the room that there is for a version in full
  }
  absl::StatusOr<Landing> Land(std::vector<float>& values) {
    return atl::Land(request_, pulled_, payload_, values);
  }

  const Codec& codec_ = CodecFor(CodecKind::kInt8);
  std::vector<float> from_, to_, theta_;
  std::vector<std::byte> payload_;
  PullRequest request_;
  PulledVersion pulled_;
};

TEST_F(LandTest, ADifferenceIsAdded) {
  std::vector<float> values = from_;
  EXPECT_EQ(*Land(values), Landing::kThere);
  EXPECT_EQ(values, to_);
}

TEST_F(LandTest, BelowTheHeadItIsOneStep) {
  pulled_.head = Version(6);
  std::vector<float> values = from_;
  EXPECT_EQ(*Land(values), Landing::kOneStep);
  EXPECT_EQ(values, to_);
}

TEST_F(LandTest, WhoHoldsSomethingElseIsAstray) {
  std::vector<float> values = from_;
  values[999] += 1e-6F;
  EXPECT_EQ(*Land(values), Landing::kAstray);
}

TEST_F(LandTest, WithoutABaseThePayloadIsTheValues) {
  pulled_.delta_base = std::nullopt;
  std::memcpy(payload_.data(), theta_.data(), payload_.size());
  std::vector<float> values(kElements);
  EXPECT_EQ(*Land(values), Landing::kThere);
  EXPECT_EQ(values, theta_);
}

TEST_F(LandTest, NonsenseIsRejected) {
  std::fill(payload_.begin(), payload_.end(), std::byte{0xff});
  std::vector<float> values = from_;
  EXPECT_FALSE(Land(values).ok());
  EXPECT_EQ(values, from_);
}

}  // namespace
}  // namespace atl
