#include "protos/transport/grpc_log.h"

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/wrappers.pb.h"
#include "grpc/grpc.h"
#include "grpc/support/log.h"
#include "gtest/gtest.h"

namespace atl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

size_t LinesIn(const std::string& text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

Logger JsonLog(std::ostringstream* out, LogLevel level) {
  return Logger::Create({.level = level, .format = LogFormat::kJson, .stream = out, .file = ""}).value();
}

class GrpcLogTest : public ::testing::Test {
 protected:
  GrpcLogTest() { grpc_init(); }  // before it nothing is logged
  ~GrpcLogTest() override { grpc_shutdown(); }
};

// Streams outlive every line: the route is the program's.
TEST_F(GrpcLogTest, LinesGoToOurLogAndNotToStandardError) {
  static std::ostringstream log;
  static std::vector<std::string> heard;
  RouteGrpcLog(JsonLog(&log, LogLevel::kDebug), [](std::string_view text) { heard.emplace_back(text); });
  ::testing::internal::CaptureStderr();
  gpr_log(GPR_ERROR, "Handshake failed with %s", "a \"quoted\" reason");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_THAT(log.str(), HasSubstr("\"level\":\"debug\""));
  EXPECT_THAT(log.str(), HasSubstr("Handshake failed with a \\\"quoted\\\" reason"));
  EXPECT_THAT(heard, ElementsAre("Handshake failed with a \"quoted\" reason"));
}

TEST_F(GrpcLogTest, AFloodIsBoundedAndEveryLineIsHeard) {
  static std::ostringstream log;
  static int heard = 0;
  RouteGrpcLog(JsonLog(&log, LogLevel::kDebug), [](std::string_view) { ++heard; });
  for (int i = 0; i < 10'000; ++i) gpr_log(GPR_ERROR, "line %d", i);
  EXPECT_EQ(heard, 10'000);
  EXPECT_LE(LinesIn(log.str()), 20u * 10) << "in some seconds";
}

TEST_F(GrpcLogTest, NothingIsShownAtTheUsualLevel) {
  static std::ostringstream log;
  RouteGrpcLog(JsonLog(&log, LogLevel::kInfo));
  ::testing::internal::CaptureStderr();
  gpr_log(GPR_ERROR, "something");
  RouteGrpcLog(Logger());
  gpr_log(GPR_ERROR, "something");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(log.str(), "");
}

TEST_F(GrpcLogTest, LinesOfProtobufGoTheSameWay) {
  static std::ostringstream log;
  RouteGrpcLog(JsonLog(&log, LogLevel::kDebug));
  ::testing::internal::CaptureStderr();
  google::protobuf::StringValue value;
  EXPECT_FALSE(value.ParseFromString("\x0a\x01\xff")) << "not UTF-8";
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_THAT(log.str(), HasSubstr("\"level\":\"debug\""));
  EXPECT_THAT(log.str(), HasSubstr("invalid UTF-8"));
}

}  // namespace
}  // namespace atl
