#include "server/web/connection_table.h"

#include <sys/socket.h>

namespace atoll {

void ConnectionTable::Opened(int socket) {
  MutexLock lock(&mutex_);
  entries_[socket] = Entry{.since = clock_->Now()};
}

void ConnectionTable::Closed(int socket) {
  MutexLock lock(&mutex_);
  entries_.erase(socket);
}

void ConnectionTable::Working(int socket) {
  MutexLock lock(&mutex_);
  if (const auto it = entries_.find(socket); it != entries_.end()) it->second.working = true;
}

void ConnectionTable::Waiting(int socket) {
  MutexLock lock(&mutex_);
  if (const auto it = entries_.find(socket); it != entries_.end()) {
    it->second = Entry{.since = clock_->Now()};
  }
}

void ConnectionTable::EndThoseSilentFor(Duration patience) {
  // Under the lock, so that the socket cannot become another's meanwhile.
  MutexLock lock(&mutex_);
  const MonoTime now = clock_->Now();
  for (const auto& [socket, entry] : entries_) {
    if (!entry.working && now - entry.since > patience) ::shutdown(socket, SHUT_RDWR);
  }
}

size_t ConnectionTable::size() const {
  MutexLock lock(&mutex_);
  return entries_.size();
}

}  // namespace atoll
