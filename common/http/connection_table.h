#ifndef ATOLL_COMMON_HTTP_CONNECTION_TABLE_H_
#define ATOLL_COMMON_HTTP_CONNECTION_TABLE_H_

#include <cstddef>
#include <map>
#include <string>

#include "common/clock.h"
#include "common/mutex.h"

namespace atl {

/// The open sockets of an HTTP server, so that none is held for ever: a client has so long to send a request
/// and to take its answer, however many bytes it dribbles meanwhile. Thread-safe.
class ConnectionTable {
 public:
  explicit ConnectionTable(const Clock* clock) : clock_(clock) {}

  /// `host`: the client's address, which EndLongestWaiting counts by.
  void Opened(int socket, std::string host = {});
  /// To be called before the socket is closed: its number may be another's after that.
  void Closed(int socket);
  /// Its request is being worked on: no time runs.
  void Working(int socket);
  /// The answer is there to be taken, or was taken: time runs anew.
  void Waiting(int socket);

  /// Shuts down those that have waited longer.
  void EndSilentConnections(Duration timeout);
  /// Shuts down the one that has waited longest, of the host that has most of those that wait. Nothing when
  /// none waits.
  void EndLongestWaiting();
  /// Without those that were shut down and are not closed yet.
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
