#include "common/status_detail.h"

#include "absl/strings/cord.h"
#include "gtest/gtest.h"

namespace atl {
namespace {

TEST(StatusDetailTest, TravelsWithTheStatus) {
  const StatusDetail detail{
      "STALE_BASE", {{"head_version", "12"}, {"text", "a=b\nc\\"}, {"", "empty key"}}, Seconds(1.5)};
  const absl::Status status = WithDetail(absl::FailedPreconditionError("stale"), detail);
  // NOLINTNEXTLINE(performance-unnecessary-copy-initialization): the copy is what is tested.
  const absl::Status copy = status;
  EXPECT_EQ(copy.message(), "stale");
  EXPECT_EQ(DetailOf(copy), detail);
}

TEST(StatusDetailTest, ReplacesAndKeepsOk) {
  absl::Status status = WithDetail(absl::UnavailableError("x"), {"A", {}, std::nullopt});
  status = WithDetail(status, {"B", {}, std::nullopt});
  EXPECT_EQ(DetailOf(status)->reason, "B");
  EXPECT_FALSE(DetailOf(status)->retry_after.has_value());
  EXPECT_TRUE(WithDetail(absl::OkStatus(), {"A", {}, std::nullopt}).ok());
  EXPECT_EQ(DetailOf(absl::UnavailableError("x")), std::nullopt);
}

TEST(StatusDetailTest, ForeignPayloadsAreNoDetail) {
  for (const char* text : {"nonsense", "retry_after_ns=soon", "reason=\\q", "other=1"}) {
    absl::Status status = absl::UnavailableError("x");
    status.SetPayload(kStatusDetailUrl, absl::Cord(text));
    EXPECT_EQ(DetailOf(status), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace atl
