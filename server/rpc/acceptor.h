#ifndef ATOLL_SERVER_RPC_ACCEPTOR_H_
#define ATOLL_SERVER_RPC_ACCEPTOR_H_

#include <sys/socket.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "common/bind_address.h"
#include "common/clock.h"
#include "common/file_descriptor.h"
#include "server/rpc/connection_limiter.h"

namespace atl {

/// What becomes of a connection for which the limits leave no room.
enum class WhenFull : uint8_t {
  kReject,
  /// It is taken, and the oldest connection of the address that has most of them is ended: for a port whose
  /// calls take no time, where clients that stay must not keep new ones out.
  kEndOldest,
};

struct AcceptorOptions {
  ConnectionLimits limits = {};
  WhenFull when_full = WhenFull::kReject;
  /// Sent bytes that nobody acknowledges for that long end a connection.
  Duration unacknowledged = Seconds(10);
  /// Where calls say that something came of a connection. Outlives the acceptor. Null: nobody says so, and
  /// all bytes of a connection count.
  ConnectionProgress* progress = nullptr;
  /// A connection was refused, or with kEndOldest an older one ended, for this reason. On the acceptor's
  /// thread; must not block. May be empty.
  std::function<void(ConnectionLimiter::Verdict)> on_rejected = {};
  /// How many there are, about once a second. Likewise.
  std::function<void(size_t)> on_count = {};
  /// A connection was ended for what it brought too much of. Likewise.
  std::function<void(ConnectionLimiter::Of)> on_greedy = {};
  /// A connection of this peer has ended, and no call ever came of it. Likewise.
  std::function<void(const std::string& peer)> on_ended_unheard = {};
};

/// Accepts the connections of one port, on a thread of its own, and hands each to its server, so that
/// their number is bounded. gRPC's own listener has no bound: it accepts until the process has no file
/// descriptor left, and then stops listening permanently.
class Acceptor {
 public:
  /// Gets the ownership of a connection, non-blocking.
  using Handoff = std::function<void(FileDescriptor)>;

  /// Listens; port 0: any free one. Connections wait in the system's queue until Start. Unavailable naming
  /// the port when it is in use; InvalidArgument when the host is not this machine's.
  static absl::StatusOr<std::unique_ptr<Acceptor>> Listen(const BindAddress& address,
                                                          AcceptorOptions options);
  ~Acceptor();

  /// As bound: the port is never 0.
  const BindAddress& address() const { return address_; }

  /// Once. `clock` outlives this. `count` tells how many streams there are of connections that were handed
  /// over; empty: nobody knows, and no connection is ended for them. On the acceptor's thread.
  void Start(Handoff handoff, const Clock* clock, CountStreams count = {});
  /// Nothing is handed over after it, and the port is free. Idempotent.
  void Stop();
  /// After Stop: hangs up all connections that were handed over. What was written to them still arrives.
  void EndConnections();

 private:
  Acceptor(BindAddress address, AcceptorOptions options, std::vector<FileDescriptor> listening);
  void Run();
  /// Accepts what waits at one socket. False: the system has no descriptor or memory for another one.
  bool AcceptAll(int listening);
  void Take(FileDescriptor connection, const sockaddr_storage& peer);
  int MillisecondsToNextLook() const;
  void EndGreedy(MonoTime now);
  void TrimSometimes(MonoTime now);
  void CountSometimes(MonoTime now);

  const BindAddress address_;
  const AcceptorOptions options_;
  std::vector<FileDescriptor> listening_;
  FileDescriptor wake_;  // an eventfd
  std::atomic<bool> stopping_{false};
  Handoff handoff_;
  CountStreams count_;
  const Clock* clock_ = nullptr;
  // The thread's:
  ConnectionLimiter limiter_;
  MonoTime looked_{};
  MonoTime counted_{};
  std::optional<MonoTime> trim_at_;
  Duration trim_after_{};
  std::thread thread_;
};

}  // namespace atl

#endif  // ATOLL_SERVER_RPC_ACCEPTOR_H_
