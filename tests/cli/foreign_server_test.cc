// What atollctl says and exits with when another program has the coordinator's address.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cli/atollctl.h"
#include "tests/fakes/raw_http2.h"

namespace atl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct Case {
  std::string name;
  RawHttp2Server::Answer answer;
  std::string words;
};

std::vector<Case> Cases() {
  const auto trailer = [](const std::string& name, const std::string& value) {
    return [=](uint32_t stream) { return GrpcHeaders(stream) + Trailer(stream, name, value); };
  };
  return {
      {"trailers without grpc-status", trailer("x-foo", "bar"), "No status received"},
      {"trailers only", [](uint32_t stream) { return GrpcHeaders(stream, kEndStream); },
       "No status received"},
      {"no trailers",
       [](uint32_t stream) { return GrpcHeaders(stream) + Http2Frame(0, kEndStream, stream, ""); },
       "Stream removed"},
      {"not a status", trailer("grpc-status", "abc"), "gRPC status UNKNOWN without a message"},
      {"UNKNOWN", trailer("grpc-status", "2"), "gRPC status UNKNOWN without a message"},
      {"OK without a message", trailer("grpc-status", "0"), "No message returned"},
      {"HTTP 403", [](uint32_t stream) { return HttpAnswer(stream, "403"); }, "HTTP status 403"},
      {"HTTP 404", [](uint32_t stream) { return HttpAnswer(stream, "404"); }, "HTTP status 404"},
      {"HTTP 500", [](uint32_t stream) { return HttpAnswer(stream, "500"); }, "HTTP status 500"},
  };
}

TEST(ForeignServer, IsNoCoordinatorAndUnavailable) {
  for (const Case& test : Cases()) {
    const RawHttp2Server server(test.answer);
    const Atollctl atollctl(
        {"--admin", server.address(), "--coordinator", server.address(), "--timeout", "5"});
    TestDir dir;
    const std::vector<std::string> arguments[] = {{"status"}, {"export", "--out", dir.File("x")}};
    for (const auto& command : arguments) {
      const Outcome outcome = atollctl.Run(command);
      EXPECT_EQ(outcome.exit_code, 3) << test.name << ": " << outcome.err;
      EXPECT_THAT(outcome.err,
                  AllOf(HasSubstr(server.address() + " is not an Atoll coordinator"), HasSubstr(test.words)))
          << test.name;
    }
  }
}

TEST(ForeignServer, AnUnavailableOneWithoutWordsLeavesNoEmptyBrackets) {
  const RawHttp2Server server(
      [](uint32_t stream) { return GrpcHeaders(stream) + Trailer(stream, "grpc-status", "14"); });
  const Outcome outcome = Atollctl({"--admin", server.address(), "--timeout", "5"}).Run({"status"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.err,
              HasSubstr("no coordinator answers on " + server.address() + "; check that it is running"));
}

}  // namespace
}  // namespace atl
