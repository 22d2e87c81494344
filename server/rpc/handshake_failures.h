#ifndef ATOLL_SERVER_RPC_HANDSHAKE_FAILURES_H_
#define ATOLL_SERVER_RPC_HANDSHAKE_FAILURES_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/clock.h"
#include "common/mutex.h"

namespace atl {

/// TLS handshakes that failed. gRPC tells of them in its log only, and not whose they were; a connection that
/// ends at that time without ever having brought a call is taken to be the one. Thread-safe.
class HandshakeFailures {
 public:
  static constexpr Duration kMatchWithin = Seconds(5);
  static constexpr size_t kMostKept = 1024;

  /// A line of gRPC's log; one that tells of no handshake is ignored.
  void OnLogLine(std::string_view line, MonoTime now) ABSL_LOCKS_EXCLUDED(mutex_);
  /// A connection has ended of which no call came: why its handshake failed, if one did.
  std::optional<std::string> Take(MonoTime now) ABSL_LOCKS_EXCLUDED(mutex_);
  /// Since the start.
  uint64_t total() const { return total_; }

 private:
  std::atomic<uint64_t> total_{0};
  Mutex mutex_;
  std::deque<std::pair<MonoTime, std::string>> open_ ABSL_GUARDED_BY(mutex_);  // whose peer is not known yet
};

}  // namespace atl

#endif  // ATOLL_SERVER_RPC_HANDSHAKE_FAILURES_H_
