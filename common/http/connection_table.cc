#include "common/http/connection_table.h"

#include <sys/socket.h>

#include <algorithm>
#include <utility>

namespace atl {

void ConnectionTable::Opened(int socket, std::string host) {
  MutexLock lock(&mutex_);
  entries_[socket] = Entry{.host = std::move(host), .since = clock_->Now()};
}

void ConnectionTable::Closed(int socket) {
  MutexLock lock(&mutex_);
  const auto it = entries_.find(socket);
  if (it == entries_.end()) return;
  if (it->second.ended) --ended_;
  entries_.erase(it);
}

void ConnectionTable::Working(int socket) {
  MutexLock lock(&mutex_);
  if (const auto it = entries_.find(socket); it != entries_.end()) it->second.working = true;
}

void ConnectionTable::Waiting(int socket) {
  MutexLock lock(&mutex_);
  if (const auto it = entries_.find(socket); it != entries_.end()) {
    it->second.working = false;
    it->second.since = clock_->Now();
  }
}

void ConnectionTable::EndSilentConnections(Duration timeout) {
  // Under the lock, so that the socket cannot become another's meanwhile.
  MutexLock lock(&mutex_);
  const MonoTime now = clock_->Now();
  for (auto& [socket, entry] : entries_) {
    if (!entry.working && now - entry.since > timeout) End(socket, entry);
  }
}

void ConnectionTable::EndLongestWaiting() {
  MutexLock lock(&mutex_);
  std::map<std::string, size_t> waiting;
  for (const auto& [socket, entry] : entries_) {
    if (!entry.working && !entry.ended) ++waiting[entry.host];
  }
  if (waiting.empty()) return;
  const auto crowd = std::ranges::max_element(waiting, {}, [](const auto& host) { return host.second; });
  std::pair<const int, Entry>* longest = nullptr;
  for (auto& each : entries_) {
    const Entry& entry = each.second;
    if (entry.working || entry.ended || entry.host != crowd->first) continue;
    if (longest == nullptr || entry.since < longest->second.since) longest = &each;
  }
  End(longest->first, longest->second);
}

void ConnectionTable::End(int socket, Entry& entry) {
  if (!entry.ended) ++ended_;
  entry.ended = true;
  ::shutdown(socket, SHUT_RDWR);
}

size_t ConnectionTable::size() const {
  MutexLock lock(&mutex_);
  return entries_.size() - ended_;
}

}  // namespace atl
