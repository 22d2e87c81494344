#include "client/rpc/call_status.h"

#include <string>

#include "gtest/gtest.h"

namespace atl {
namespace {

TEST(CallStatusTest, ARefusedConnectionIsSaidWithoutTheTermsOfGrpc) {
  const std::string prefix = "failed to connect to all addresses; last error: ";
  EXPECT_EQ(WithoutGrpcTerms(
                prefix + "UNKNOWN: ipv4:10.0.0.1:7600: Failed to connect to remote host: Connection refused"),
            "Connection refused");
  EXPECT_EQ(
      WithoutGrpcTerms(
          prefix + "UNAVAILABLE: ipv6:%5B::1%5D:7600: Failed to connect to remote host: No route to host"),
      "No route to host");
  EXPECT_EQ(WithoutGrpcTerms(prefix + "INTERNAL: Trying to connect an http1.x server"),
            "Trying to connect an http1.x server");
}

TEST(CallStatusTest, OtherTextsStay) {
  for (const std::string text : {"", "Socket closed", "failed to connect to all addresses",
                                 "failed to connect to all addresses; last error: "}) {
    EXPECT_EQ(WithoutGrpcTerms(text), text);
  }
}

}  // namespace
}  // namespace atl
