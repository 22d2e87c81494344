#ifndef ATOLL_SERVER_ACCESS_DENIAL_LOG_H_
#define ATOLL_SERVER_ACCESS_DENIAL_LOG_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "common/clock.h"
#include "common/log.h"
#include "common/mutex.h"

namespace atl {

/// Logs who was turned away, in a log that an attacker cannot fill. The first denial of a kind to a host is
/// written at once, later ones at most every kQuiet, each with the number of those that were left out before
/// it. At most kMostHosts hosts and kinds are told apart; the others count as one. Thread-safe.
class DenialLog {
 public:
  static constexpr Duration kQuiet = Seconds(10);
  static constexpr size_t kMostHosts = 256;

  /// `clock` outlives it.
  DenialLog(const Logger& log, const Clock* clock);

  /// `what` was denied ("call denied") to this peer, "127.0.0.1:50123" or "[::1]:50123". `why` holds no
  /// secret.
  void Denied(std::string_view what, const std::string& peer, std::string_view why)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Host {
    MonoTime written;
    uint64_t left_out = 0;
  };

  const Logger log_;
  const Clock* const clock_;
  Mutex mutex_;
  std::map<std::string, Host> hosts_ ABSL_GUARDED_BY(mutex_);  // by kind and host
};

}  // namespace atl

#endif  // ATOLL_SERVER_ACCESS_DENIAL_LOG_H_
