#ifndef ATOLL_WORKER_ISLAND_FRAME_SOCKET_H_
#define ATOLL_WORKER_ISLAND_FRAME_SOCKET_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/file_descriptor.h"
#include "common/mutex.h"

// Frames between rank 0 and the other ranks of an island: docs/reference/islands.md has the grammar.

namespace atl {

enum class FrameType : uint8_t {
  kHello = 1,      // a rank says who it is (agreement.h)
  kWelcome = 2,    // rank 0 takes it
  kRefusal = 3,    // rank 0 does not; the text says why
  kHeartbeat = 4,  // the process runs
  kCall = 5,       // rank 0: execute this (rank_call.h)
  kReply = 6,      // how a call ended
  kClose = 7,      // rank 0 ends; the exit code
  kDrain = 8,      // this rank was asked to end: rank 0 is to drain
};

struct Frame {
  FrameType type = FrameType::kHeartbeat;
  std::string body;
};

/// Beyond this a peer does not speak this protocol. Values travel through collectives.
inline constexpr uint32_t kMaxFrameBytes = uint32_t{16} << 20;

/// Unavailable when this host's resolver does not know the name; the message says why.
absl::Status CheckHostName(const std::string& host);

/// One TCP connection between two ranks. Send may be called by any thread, the rest by one.
class FrameSocket {
 public:
  /// DeadlineExceeded when nobody answers there within `patience`; Unavailable when it cannot be reached.
  /// `timeout`: of each Send.
  static absl::StatusOr<std::unique_ptr<FrameSocket>> Connect(const std::string& host, uint16_t port,
                                                              Duration patience, Duration timeout);
  /// A connection that was accepted.
  FrameSocket(FileDescriptor fd, Duration timeout);

  /// Unavailable when the peer has closed the connection, or has read nothing for the timeout.
  absl::Status Send(FrameType type, std::string_view body) ABSL_LOCKS_EXCLUDED(mutex_);

  /// The next frame, when one comes within `patience`; nothing when none does. Unavailable when the
  /// connection has ended; InvalidArgument when what came is no frame.
  absl::StatusOr<std::optional<Frame>> Receive(Duration patience);

  /// This host's address of the connection, without a port.
  std::string local_address() const;
  /// Whether the peer is a process on this host, as the network sees it: a pod is a host of its own.
  bool within_host() const;

 private:
  std::optional<Frame> TakeFrame(absl::Status& broken);

  const FileDescriptor fd_;
  Mutex mutex_;  // of writing
  std::string received_;
};

/// Where rank 0 waits for the others.
class FrameListener {
 public:
  /// On `host` when that is an address of this machine, else on all of its addresses. A name that only this
  /// machine takes for the loopback (Debian's 127.0.1.1 in /etc/hosts) counts as the latter. The system
  /// chooses the port.
  static absl::StatusOr<std::unique_ptr<FrameListener>> Listen(const std::string& host);

  FrameListener(FileDescriptor fd, uint16_t port) : fd_(std::move(fd)), port_(port) {}
  uint16_t port() const { return port_; }
  /// Null when nobody comes within `patience`. `timeout`: of the connection's Send.
  absl::StatusOr<std::unique_ptr<FrameSocket>> Accept(Duration patience, Duration timeout);

 private:
  const FileDescriptor fd_;
  const uint16_t port_;
};

}  // namespace atl

#endif  // ATOLL_WORKER_ISLAND_FRAME_SOCKET_H_
