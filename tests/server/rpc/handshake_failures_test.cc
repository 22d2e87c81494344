#include "server/rpc/handshake_failures.h"

#include "gtest/gtest.h"

namespace atl {
namespace {

TEST(HandshakeFailuresTest, AnEndedConnectionGetsTheReasonOfAFailureJustBefore) {
  HandshakeFailures failures;
  MonoTime now{};
  EXPECT_EQ(failures.Take(now), std::nullopt);
  failures.OnLogLine(
      "Handshake failed with fatal error SSL_ERROR_SSL: error:0A0000C7:SSL routines::peer did not "
      "return a certificate.",
      now);
  failures.OnLogLine("recvmsg:Connection reset by peer", now);
  EXPECT_EQ(failures.total(), 1u);
  EXPECT_EQ(failures.Take(now + Seconds(1)), "peer did not return a certificate");
  EXPECT_EQ(failures.Take(now + Seconds(1)), std::nullopt);
  failures.OnLogLine("Handshake failed with fatal error SSL_ERROR_SYSCALL: nothing more", now);
  EXPECT_EQ(failures.Take(now), "SSL_ERROR_SYSCALL: nothing more");
}

TEST(HandshakeFailuresTest, AnOldFailureIsNobodysAndAFloodIsCounted) {
  HandshakeFailures failures;
  const MonoTime now{};
  for (int i = 0; i < 5000; ++i) failures.OnLogLine("Handshake failed with fatal error x", now);
  EXPECT_EQ(failures.total(), 5000u);
  EXPECT_TRUE(failures.Take(now).has_value());
  EXPECT_EQ(failures.Take(now + Seconds(6)), std::nullopt);
}

}  // namespace
}  // namespace atl
