#ifndef ATOLL_SERVER_RPC_CONNECTION_PROGRESS_H_
#define ATOLL_SERVER_RPC_CONNECTION_PROGRESS_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "common/mutex.h"

namespace atl {

/// What came of a connection since somebody last looked, who takes it down again.
struct ConnectionSigns {
  std::atomic<bool> moved{false};  // a call or a message, and not only bytes
  std::atomic<uint32_t> held{0};   // messages that are being worked on; not taken down
};

/// A message that was read and is being worked on, or waits for that. What arrives meanwhile cannot come to
/// anything: its sender is not to blame.
class HeldMessage {
 public:
  explicit HeldMessage(std::shared_ptr<ConnectionSigns> signs);
  ~HeldMessage();
  HeldMessage(const HeldMessage&) = delete;
  HeldMessage& operator=(const HeldMessage&) = delete;

 private:
  const std::shared_ptr<ConnectionSigns> signs_;  // null: nobody watches
};

/// The signs of each connection. Who serves a call gives them (Find once, then set them); who watches the
/// connections takes them down. Thread-safe.
class ConnectionProgress {
 public:
  using Signs = std::shared_ptr<ConnectionSigns>;

  /// A connection from this peer, "127.0.0.1:50123" or "[::1]:50123", is there from now until the last copy
  /// of the signs is gone.
  Signs Open(const std::string& peer);
  /// Null when there is none (a call in this process, or one whose connection is just ending).
  Signs Find(const std::string& peer);

 private:
  Mutex mutex_;
  std::map<std::string, std::weak_ptr<ConnectionSigns>> signs_ ABSL_GUARDED_BY(mutex_);
  size_t clean_at_ ABSL_GUARDED_BY(mutex_) = 64;
};

}  // namespace atl

#endif  // ATOLL_SERVER_RPC_CONNECTION_PROGRESS_H_
