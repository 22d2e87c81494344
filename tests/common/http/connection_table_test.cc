#include "common/http/connection_table.h"

#include <sys/socket.h>

#include <array>
#include <map>
#include <string>

#include "common/file_descriptor.h"
#include "gtest/gtest.h"
#include "tests/common/fake_clock.h"

namespace atl {
namespace {

class ConnectionTableTest : public ::testing::Test {
 protected:
  void Open(const std::string& name, const std::string& host) {
    std::array<int, 2> pair{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair.data()), 0);
    ours_[name] = FileDescriptor(pair[0]);
    theirs_[name] = FileDescriptor(pair[1]);
    table_.Opened(pair[0], host);
    clock_.Advance(Seconds(1));
  }
  void Close(const std::string& name) {
    table_.Closed(ours_[name].get());
    ours_[name].Reset();
  }
  bool Ended(const std::string& name) {
    char byte = 0;
    return ::recv(theirs_[name].get(), &byte, 1, MSG_DONTWAIT) == 0;
  }

  FakeClock clock_;
  ConnectionTable table_{&clock_};
  std::map<std::string, FileDescriptor> ours_;
  std::map<std::string, FileDescriptor> theirs_;
};

TEST_F(ConnectionTableTest, TheOldestOfTheAddressWithMostConnectionsEnds) {
  Open("probe", "10.0.0.1");
  Open("first", "10.0.0.2");
  Open("second", "10.0.0.2");
  table_.EndLongestWaiting();
  EXPECT_FALSE(Ended("probe")) << "it is older, but the only one of its address";
  EXPECT_TRUE(Ended("first"));
  EXPECT_FALSE(Ended("second"));
  EXPECT_EQ(table_.size(), 2U) << "before its server has noticed";
  Close("first");
  EXPECT_EQ(table_.size(), 2U);
}

TEST_F(ConnectionTableTest, ARequestInWorkIsNotEnded) {
  Open("works", "10.0.0.2");
  table_.Working(ours_["works"].get());
  table_.EndLongestWaiting();
  EXPECT_FALSE(Ended("works"));
  Open("waits", "10.0.0.2");
  table_.EndLongestWaiting();
  EXPECT_FALSE(Ended("works"));
  EXPECT_TRUE(Ended("waits"));
}

TEST_F(ConnectionTableTest, AnAnswerThatNobodyTakesCountsAsWaiting) {
  Open("takes none", "10.0.0.2");
  Open("silent", "10.0.0.2");
  table_.Working(ours_["takes none"].get());
  table_.Waiting(ours_["takes none"].get());
  table_.EndLongestWaiting();
  EXPECT_TRUE(Ended("silent")) << "its time began earlier";
  table_.EndLongestWaiting();
  EXPECT_TRUE(Ended("takes none"));
}

TEST_F(ConnectionTableTest, TheSilentEndAfterTheirTime) {
  Open("old", "10.0.0.1");
  clock_.Advance(Seconds(9));
  Open("young", "10.0.0.1");
  table_.EndSilentConnections(Seconds(5));
  EXPECT_TRUE(Ended("old"));
  EXPECT_FALSE(Ended("young"));
}

}  // namespace
}  // namespace atl
