#include "common/bind_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "common/file_descriptor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace atl {
namespace {

using ::testing::HasSubstr;

TEST(BindAddressTest, ParsesHostsAndPorts) {
  for (const char* text : {"127.0.0.1:7600", "localhost:0", "[::1]:65535", "0.0.0.0:1", "node-1.local:80"}) {
    const auto address = ParseBindAddress(text);
    ASSERT_TRUE(address.ok()) << address.status();
    EXPECT_EQ(address->ToString(), text);
  }
  EXPECT_EQ(ParseBindAddress("[::1]:9")->host, "::1");
}

TEST(BindAddressTest, RejectsWhatIsNoAddress) {
  for (const char* text : {"", "7600", ":7600", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536",
                           "127.0.0.1:-1", "::1:7600", "[[]]:1", "[::1:1", "a]:1"}) {
    const auto address = ParseBindAddress(text);
    ASSERT_TRUE(absl::IsInvalidArgument(address.status())) << text;
    EXPECT_THAT(std::string(address.status().message()), HasSubstr("HOST:PORT"));
  }
}

TEST(BindAddressTest, KnowsWhatOnlyThisMachineCanReach) {
  for (const char* text : {"127.0.0.1:1", "127.8.9.1:1", "localhost:1", "[::1]:1"}) {
    EXPECT_TRUE(IsLoopback(*ParseBindAddress(text))) << text;
  }
  for (const char* text : {"0.0.0.0:1", "[::]:1", "10.0.0.1:1", "example.org:1", "128.0.0.1:1"}) {
    EXPECT_FALSE(IsLoopback(*ParseBindAddress(text))) << text;
  }
}

TEST(BindAddressTest, SaysWhoIsInTheWay) {
  const FileDescriptor listener(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  socklen_t length = sizeof(address);
  ASSERT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
  const BindAddress taken{"127.0.0.1", ntohs(address.sin_port)};
  const absl::Status status = CheckBindable(taken);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(taken.ToString()));
  EXPECT_TRUE(CheckBindable({"127.0.0.1", 0}).ok());
}

TEST(BindAddressTest, RejectsAddressesOfOtherMachines) {
  EXPECT_TRUE(absl::IsInvalidArgument(CheckBindable({"192.0.2.1", 0})));  // RFC 5737: nobody's
}

}  // namespace
}  // namespace atl
