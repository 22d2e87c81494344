#include "client/engine/engine_options.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace atl {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<EngineOptions> Parse(std::vector<ipc::Option> more, bool joins = true) {
  more.insert(more.begin(), {{"coordinator", "host:1"}, {"state-dir", "s"}});
  return ParseEngineOptions(more, joins);
}

TEST(EngineOptionsTest, TakesTheOptionsOfAWorker) {
  const auto options = Parse({{"name", "w0"},
                              {"role", "evaluator"},
                              {"wait-forever", "true"},
                              {"stop-on-any-difference", "false"},
                              {"drain-seconds", "2.5"},
                              {"pull-streams", "4"},
                              {"tls-ca", "ca.pem"},
                              {"insecure-token", "true"},
                              {"log-format", "json"},
                              {"device", "cuda:1"},
                              {"threads", "8"},
                              {"data-fingerprint", "abc"}});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->member.coordinator, "host:1");
  EXPECT_EQ(options->member.state_dir, "s");
  EXPECT_EQ(options->member.role, "evaluator");
  EXPECT_TRUE(options->member.wait_forever);
  EXPECT_FALSE(options->member.stop_on_any_difference);
  EXPECT_EQ(options->member.drain_seconds, 2.5);
  EXPECT_EQ(options->member.pull_streams, 4U);
  EXPECT_EQ(options->member.security.tls_ca, "ca.pem");
  EXPECT_EQ(options->log.format, "json");
  EXPECT_EQ(options->device, "cuda:1");
  EXPECT_EQ(options->threads, 8);
  EXPECT_EQ(options->data_fingerprint, "abc");
}

TEST(EngineOptionsTest, AValueMayBeginWithDashesOrHoldAnEqualsSign) {
  const auto options = Parse({{"device-name", "--odd=name"}});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->device_name, "--odd=name");
}

TEST(EngineOptionsTest, NamesWhatIsWrong) {
  const auto message = [](std::vector<ipc::Option> more) {
    const absl::Status status = Parse(std::move(more)).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(message({{"nam", "w0"}}), HasSubstr("unknown option 'nam'; did you mean 'name'?"));
  EXPECT_THAT(message({{"help", "true"}}), HasSubstr("unknown option 'help'"));
  EXPECT_THAT(message({{"name", "a"}, {"name", "b"}}), HasSubstr("given twice"));
  EXPECT_THAT(message({{"threads", "many"}}), HasSubstr("threads"));
  EXPECT_THAT(message({{"pull-streams", "0"}}), HasSubstr("pull-streams"));
  EXPECT_THAT(message({{"wait-forever", "perhaps"}}), HasSubstr("wait-forever"));
  EXPECT_THAT(message({{"drain-seconds", "nan"}}), HasSubstr("drain-seconds"));
  EXPECT_THAT(message({{"drain-seconds", "-1"}}), HasSubstr("option drain-seconds: Value -1 not in range"));
  EXPECT_EQ(message({{"tls-ca", ""}}), "option 'tls-ca' is empty: give a value, or leave the option out");
  EXPECT_EQ(message({{"name", ""}}), "option 'name' is empty: give a value, or leave the option out");
}

TEST(EngineOptionsTest, NamesWhatIsMissing) {
  EXPECT_THAT(std::string(ParseEngineOptions({{"coordinator", "h:1"}}, true).status().message()),
              HasSubstr("'state-dir' is required"));
  EXPECT_TRUE(ParseEngineOptions({{"coordinator", "h:1"}}, false).ok());
  EXPECT_THAT(std::string(ParseEngineOptions({{"coordinator", ""}}, false).status().message()),
              HasSubstr("'coordinator' is required"));
}

}  // namespace
}  // namespace atl
