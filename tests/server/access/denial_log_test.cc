#include "server/access/denial_log.h"

#include <algorithm>
#include <sstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/fake_clock.h"

namespace atl {
namespace {

using ::testing::HasSubstr;

class DenialLogTest : public ::testing::Test {
 protected:
  size_t Lines() const {
    const std::string text = log_.str();
    return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
  }

  std::ostringstream log_;
  FakeClock clock_;
  DenialLog denials_{Logger::Create({.format = LogFormat::kJson, .stream = &log_, .file = ""}).value(),
                     &clock_};
};

TEST_F(DenialLogTest, NamesPeerAndReason) {
  denials_.Denied("call denied", "10.0.0.7:50123", "the token is not known");
  EXPECT_THAT(log_.str(), HasSubstr("\"message\":\"call denied\""));
  EXPECT_THAT(log_.str(), HasSubstr("\"peer\":\"10.0.0.7:50123\""));
  EXPECT_THAT(log_.str(), HasSubstr("\"why\":\"the token is not known\""));
}

TEST_F(DenialLogTest, OneHostGetsALineNowAndThenWithTheNumberLeftOut) {
  for (int i = 0; i < 1000; ++i) denials_.Denied("call denied", "10.0.0.7:" + std::to_string(i), "no");
  EXPECT_EQ(Lines(), 1u);
  clock_.Advance(DenialLog::kQuiet);
  denials_.Denied("call denied", "10.0.0.7:1", "no");
  EXPECT_EQ(Lines(), 2u);
  EXPECT_THAT(log_.str(), HasSubstr("\"not_logged_before\":999"));
  denials_.Denied("call denied", "[::1]:1", "no");
  EXPECT_EQ(Lines(), 3u) << "another host is not hidden by the first";
  denials_.Denied("TLS handshake failed", "10.0.0.7:1", "no");
  EXPECT_EQ(Lines(), 4u) << "nor is another kind";
}

TEST_F(DenialLogTest, ManyHostsCannotFillIt) {
  for (int i = 0; i < 5000; ++i) {
    denials_.Denied("call denied", "10.0." + std::to_string(i / 250) + "." + std::to_string(i % 250) + ":1",
                    "no");
  }
  EXPECT_LE(Lines(), DenialLog::kMostHosts + 1);
}

}  // namespace
}  // namespace atl
