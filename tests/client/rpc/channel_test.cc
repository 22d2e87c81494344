#include "client/rpc/channel.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace atl {
namespace {

TEST(CheckAddressTest, HostAndPort) {
  for (const char* good : {"127.0.0.1:7600", "localhost:1", "coordinator.example:65535", "[::1]:7600"}) {
    EXPECT_TRUE(CheckAddress(good).ok()) << good;
  }
}

TEST(CheckAddressTest, AnythingElseIsSaid) {
  for (const char* bad : {"", "127.0.0.1", ":7600", "host:", "host:0", "host:65536", "host:http", "::1:7600",
                          "[]:1", "http://host:7600", "a b:1"}) {
    const absl::Status status = CheckAddress(bad);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bad;
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("expected HOST:PORT")) << bad;
  }
}

}  // namespace
}  // namespace atl
