#ifndef ATOLL_CLIENT_IPC_MESSAGE_SOCKET_H_
#define ATOLL_CLIENT_IPC_MESSAGE_SOCKET_H_

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "client/ipc/messages.h"

namespace atl::ipc {

/// message := type:u32 bytes:u32 body
inline constexpr uint32_t kMaxMessage = uint32_t{64} << 20;

enum class Received : uint8_t {
  kMessage,
  kTimeout,
  kClosed,   // the other process closed its end, or is gone
  kInvalid,  // what came is no message; nothing more is read
};

/// One end of the socket. Owns its descriptor. Send may be called from any thread, Receive from one at a
/// time.
class MessageSocket {
 public:
  explicit MessageSocket(int descriptor) : descriptor_(descriptor) {}
  ~MessageSocket();
  MessageSocket(const MessageSocket&) = delete;
  MessageSocket& operator=(const MessageSocket&) = delete;

  /// Waits at most `timeout` (negative: without end) for the other process to make room. False: it is gone,
  /// it made no room, or the message is too large. After a message that was sent in part, nothing can be
  /// sent. Never raises SIGPIPE.
  bool Send(MessageType type, std::string_view body,
            std::chrono::milliseconds timeout = std::chrono::milliseconds(-1));

  /// Waits at most `timeout` for a whole message. What has come of one stays for the next call. Signals do
  /// not end the wait.
  Received Receive(std::chrono::milliseconds timeout, MessageType& type, std::string& body);

 private:
  /// Whether `incoming_` begins with a whole message, which is then taken out.
  Received TakeMessage(MessageType& type, std::string& body);

  const int descriptor_;
  std::mutex sending_;
  bool broken_ = false;  // under `sending_`: a message was sent in part
  std::string incoming_;
};

}  // namespace atl::ipc

#endif  // ATOLL_CLIENT_IPC_MESSAGE_SOCKET_H_
