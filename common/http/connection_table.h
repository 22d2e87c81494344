#ifndef ATOLL_COMMON_HTTP_CONNECTION_TABLE_H_
#define ATOLL_COMMON_HTTP_CONNECTION_TABLE_H_

#include <cstddef>
#include <map>
#include <string>

#include "common/clock.h"
#include "common/mutex.h"

namespace atl {

/// The open sockets of an HTTP server. Limits the time for a client to send a request and to receive the
/// answer, even if it sends bytes slowly all the time, so that no socket stays open forever. Thread-safe.
class ConnectionTable {
 public:
  explicit ConnectionTable(const Clock* clock) : clock_(clock) {}

  /// `host`: the client's address, which EndLongestWaiting counts by.
  void Opened(int socket, std::string host = {});
  /// Call it before the socket is closed, because the number may then be reused.
  void Closed(int socket);
  /// The server is working on the request: stops the timer.
  void Working(int socket);
  /// The answer is ready or was received: restarts the timer.
  void Waiting(int socket);

  /// Shuts down sockets that have waited longer.
  void EndSilentConnections(Duration timeout);
  /// Shuts down the longest-waiting socket of the host with the most waiting sockets. Does nothing if none
  /// waits.
  void EndLongestWaiting();
  /// Does not count sockets that were shut down but are not closed yet.
  size_t size() const;

 private:
  struct Entry {
    std::string host;
    bool working = false;
    bool ended = false;  // shut down; its server has not noticed yet
    MonoTime since;
  };
  void End(int socket, Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock* const clock_;
  mutable Mutex mutex_;
  size_t ended_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<int, Entry> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace atl

#endif  // ATOLL_COMMON_HTTP_CONNECTION_TABLE_H_
