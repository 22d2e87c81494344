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

/// Logs rejected callers at a rate that an attacker cannot raise. The first denial of a kind to a host is
/// logged immediately, later ones at most every kQuiet, each with the number of omitted ones. Distinguishes
/// at most kMostHosts hosts and kinds; all others count as one. Thread-safe.
class DenialLog {
 public:
  static constexpr Duration kQuiet = Seconds(10);
  static constexpr size_t kMostHosts = 256;

  /// `clock` outlives it.
  DenialLog(const Logger& log, const Clock* clock);

  /// `what` was denied ("call denied") to this peer, "127.0.0.1:50123" or "[::1]:50123". `why` contains no
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
