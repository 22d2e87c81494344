#include "cli/json_field.h"

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace atl {
namespace {

using testing::HasSubstr;

constexpr char kStatus[] = R"({
  "config": {"sync": {"fragments": 3}, "codec": {"push": "CODEC_E3M0"}},
  "fragments": [{"id": 0, "version": "17"}, {"id": 1, "version": "16"}],
  "evaluations": [{"loss": 5.5}, {"loss": 3.25}],
  "workers": [{"name": "w0", "handle": "100"}, {"name": "w3", "handle": "103"}]})";

TEST(JsonFieldTest, FollowsNamesAndPositions) {
  EXPECT_EQ(*JsonField(kStatus, "fragments.0.version"), "17");
  EXPECT_EQ(*JsonField(kStatus, "config.sync.fragments"), "3");
  EXPECT_EQ(*JsonField(kStatus, "evaluations.-1.loss"), "3.25");
  EXPECT_EQ(*JsonField(kStatus, "workers.name=w3.handle"), "103");
  EXPECT_EQ(*JsonField(kStatus, "config.codec"), R"({"push":"CODEC_E3M0"})");
}

TEST(JsonFieldTest, SaysWhatThereIsInstead) {
  const auto field = JsonField(kStatus, "config.codec.pull");
  EXPECT_EQ(field.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(field.status().message(), HasSubstr("no 'pull' on the path 'config.codec.pull'"));
  EXPECT_THAT(field.status().message(), HasSubstr("an object with the fields push"));
  EXPECT_FALSE(JsonField(kStatus, "fragments.2.version").ok());
  EXPECT_FALSE(JsonField(kStatus, "fragments.-3.version").ok());
  EXPECT_FALSE(JsonField(kStatus, "workers.name=w1.handle").ok());
  EXPECT_FALSE(JsonField(kStatus, "fragments.0.version.more").ok());
  EXPECT_FALSE(JsonField("[1, 2]", "name=x").ok());
  EXPECT_FALSE(JsonField("no JSON", "a").ok());
  EXPECT_FALSE(JsonField("", "a").ok());
}

}  // namespace
}  // namespace atl
