#ifndef ATOLL_WORKER_ISLAND_PEER_LINK_H_
#define ATOLL_WORKER_ISLAND_PEER_LINK_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "common/thread.h"
#include "worker/island/frame_socket.h"

namespace atl {

struct PeerLinkOptions {
  uint32_t rank = 0;  // of the peer
  Duration timeout = Seconds(60);
  /// The peer's process has ended, or has shown no sign of life for the timeout. On the link's thread, or on
  /// that of a caller of Send, before these learn of it. Does not return in production.
  std::function<void(uint32_t rank, const absl::Status& cause)> on_lost;
  /// The peer was asked to end (FrameType::kDrain). On the link's thread.
  std::function<void()> on_drain;
};

/// A connection to another rank, with heartbeats in both directions. Silence is counted in own heartbeats, so
/// that a process that was suspended and goes on does not take the others for dead. Thread-safe; Next is
/// called by one thread.
class PeerLink {
 public:
  PeerLink(std::unique_ptr<FrameSocket> socket, PeerLinkOptions options);
  ~PeerLink();
  PeerLink(const PeerLink&) = delete;
  PeerLink& operator=(const PeerLink&) = delete;

  uint32_t rank() const { return options_.rank; }
  /// Unavailable when the peer is lost.
  absl::Status Send(FrameType type, std::string_view body);
  /// The next call, reply or close. Blocks. Unavailable when the peer is lost.
  absl::StatusOr<Frame> Next() ABSL_LOCKS_EXCLUDED(mutex_);
  /// From here on the end of the connection is no loss.
  void ExpectEnd() { ends_ = true; }
  /// Waits until the connection has ended, `limit` at most.
  void AwaitEnd(Duration limit) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Run();
  void Take(Frame frame) ABSL_LOCKS_EXCLUDED(mutex_);
  void Lose(const absl::Status& cause) ABSL_LOCKS_EXCLUDED(mutex_);

  const std::unique_ptr<FrameSocket> socket_;
  const PeerLinkOptions options_;
  std::atomic<bool> ends_{false};
  std::atomic<bool> stopped_{false};
  Mutex mutex_;
  CondVar changed_;
  std::deque<Frame> frames_ ABSL_GUARDED_BY(mutex_);
  absl::Status lost_ ABSL_GUARDED_BY(mutex_);
  Thread thread_;  // declared last, because it uses everything above
};

}  // namespace atl

#endif  // ATOLL_WORKER_ISLAND_PEER_LINK_H_
