#ifndef ATOLL_SERVER_WEB_CONNECTION_TABLE_H_
#define ATOLL_SERVER_WEB_CONNECTION_TABLE_H_

#include <cstddef>
#include <map>

#include "common/clock.h"
#include "common/mutex.h"

namespace atoll {

/// The open sockets of the web server, so that none is held for ever: a client has so long to send a request
/// and to take its answer, however many bytes it dribbles meanwhile. Thread-safe.
class ConnectionTable {
 public:
  explicit ConnectionTable(const Clock* clock) : clock_(clock) {}

  void Opened(int socket);
  /// To be called before the socket is closed: its number may be another's after that.
  void Closed(int socket);
  /// The coordinator works on its request: no time runs.
  void Working(int socket);
  /// The answer is there to be taken, or was taken: time runs anew.
  void Waiting(int socket);

  /// Shuts down those that have waited longer.
  void EndThoseSilentFor(Duration patience);
  size_t size() const;

 private:
  struct Entry {
    bool working = false;
    MonoTime since;
  };
  const Clock* const clock_;
  mutable Mutex mutex_;
  std::map<int, Entry> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace atoll

#endif  // ATOLL_SERVER_WEB_CONNECTION_TABLE_H_
