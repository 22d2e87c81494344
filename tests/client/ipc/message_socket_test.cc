#include "client/ipc/message_socket.h"

#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <thread>

#include "gtest/gtest.h"

namespace atl::ipc {
namespace {

using std::chrono::milliseconds;

class MessageSocketTest : public ::testing::Test {
 protected:
  MessageSocketTest() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    near_ = std::make_unique<MessageSocket>(ends[0]);
    far_descriptor_ = ends[1];
    far_ = std::make_unique<MessageSocket>(ends[1]);
  }
  Received Receive(milliseconds timeout = milliseconds(60'000)) {
    return near_->Receive(timeout, type_, body_);
  }

  std::unique_ptr<MessageSocket> near_;
  std::unique_ptr<MessageSocket> far_;
  int far_descriptor_ = -1;
  MessageType type_{};
  std::string body_;
};

TEST_F(MessageSocketTest, MessagesArriveWholeAndInOrder) {
  const std::string large(3 << 20, 'x');
  std::thread sender([&] {
    EXPECT_TRUE(far_->Send(MessageType::kEvent, large));
    EXPECT_TRUE(far_->Send(MessageType::kStop, ""));
  });
  EXPECT_EQ(Receive(), Received::kMessage);
  EXPECT_EQ(type_, MessageType::kEvent);
  EXPECT_EQ(body_, large);
  EXPECT_EQ(Receive(), Received::kMessage);
  EXPECT_EQ(type_, MessageType::kStop);
  EXPECT_EQ(body_, "");
  sender.join();
}

TEST_F(MessageSocketTest, PartOfAMessageStaysForTheNextCall) {
  const std::string message = std::string("\x04\0\0\0\x03\0\0\0", 8) + "abc";
  ASSERT_EQ(::send(far_descriptor_, message.data(), 5, 0), 5);
  EXPECT_EQ(Receive(milliseconds(1)), Received::kTimeout);
  ASSERT_EQ(::send(far_descriptor_, message.data() + 5, 6, 0), 6);
  EXPECT_EQ(Receive(), Received::kMessage);
  EXPECT_EQ(body_, "abc");
}

TEST_F(MessageSocketTest, AnEndThatCloses) {
  EXPECT_TRUE(far_->Send(MessageType::kReady, "last"));
  far_.reset();
  EXPECT_EQ(Receive(), Received::kMessage);
  EXPECT_EQ(body_, "last");
  EXPECT_EQ(Receive(), Received::kClosed);
  EXPECT_FALSE(near_->Send(MessageType::kStop, ""));
}

TEST_F(MessageSocketTest, NoRoomEndsTheWaitAtItsTimeout) {
  int sent = 0;
  while (far_->Send(MessageType::kDrain, "", milliseconds(0))) ++sent;
  EXPECT_FALSE(far_->Send(MessageType::kStop, "", milliseconds(10)));
  // None of them was sent in part: once there is room it goes on.
  for (int i = 0; i < sent; ++i) ASSERT_EQ(Receive(), Received::kMessage);
  EXPECT_EQ(Receive(milliseconds(0)), Received::kTimeout);
  EXPECT_TRUE(far_->Send(MessageType::kStop, "", milliseconds(10)));
  EXPECT_EQ(Receive(), Received::kMessage);
  EXPECT_EQ(type_, MessageType::kStop);
}

TEST_F(MessageSocketTest, NothingFollowsAMessageThatWasSentInPart) {
  EXPECT_FALSE(far_->Send(MessageType::kEvent, std::string(8 << 20, 'x'), milliseconds(10)));
  EXPECT_EQ(Receive(milliseconds(0)), Received::kTimeout) << "its beginning is read, so that there is room";
  EXPECT_FALSE(far_->Send(MessageType::kStop, "", milliseconds(10)));
}

TEST_F(MessageSocketTest, AMessageThatIsTooLarge) {
  EXPECT_FALSE(near_->Send(MessageType::kEvent, std::string(size_t{kMaxMessage} + 1, 'x')));
  const uint32_t header[2] = {4, kMaxMessage + 1};
  ASSERT_EQ(::send(far_descriptor_, header, sizeof(header), 0), ssize_t{sizeof(header)});
  EXPECT_EQ(Receive(), Received::kInvalid);
}

}  // namespace
}  // namespace atl::ipc
