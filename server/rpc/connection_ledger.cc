#include "server/rpc/connection_ledger.h"

#include <sys/socket.h>

#include <algorithm>
#include <utility>

namespace atoll {

uint64_t SocketCookie(int fd) {
  uint64_t cookie = 0;
  socklen_t size = sizeof(cookie);
  return ::getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &size) == 0 ? cookie : 0;
}

bool IsStillOpen(const OpenSocket& socket) {
  const uint64_t cookie = SocketCookie(socket.fd);
  return cookie != 0 && cookie == socket.cookie;
}

ConnectionLedger::Verdict ConnectionLedger::Judge(const std::string& host) const {
  if (open_.size() >= limits_.total) return Verdict::kTooMany;
  const auto found = by_host_.find(host);
  const size_t of_host = found == by_host_.end() ? 0 : found->second;
  return of_host >= limits_.per_address ? Verdict::kTooManyOfAddress : Verdict::kAdmitted;
}

ConnectionLedger::Verdict ConnectionLedger::Admit(const OpenSocket& socket, MonoTime now) {
  Verdict verdict = Judge(socket.host);
  if (verdict != Verdict::kAdmitted) {
    Look(now);
    verdict = Judge(socket.host);
  }
  if (verdict != Verdict::kAdmitted) return verdict;
  open_.push_back(socket);
  ++by_host_[socket.host];
  return verdict;
}

size_t ConnectionLedger::Count(MonoTime now) {
  Look(now);
  return open_.size();
}

bool ConnectionLedger::CallsTooMuch(OpenSocket& socket) const {
  const uint32_t calls = socket.signs == nullptr ? 0 : socket.signs->calls.exchange(0);
  const uint32_t busy = std::min(calls / limits_.calls_per_look, kMostLooksAtOnce);
  socket.busy_looks = busy == 0 ? 0 : socket.busy_looks + busy;
  return socket.busy_looks >= kBusyLooks;
}

std::vector<ConnectionLedger::Greed> ConnectionLedger::Greedy(
    const std::function<uint64_t(int fd)>& received) {
  std::erase_if(open_, [this](const OpenSocket& socket) { return !alive_(socket); });
  std::vector<Greed> greedy;
  Bytes silent;
  Bytes held;
  for (OpenSocket& socket : open_) {
    if (CallsTooMuch(socket)) {
      greedy.push_back({.fd = socket.fd, .of = Of::kCalls});
      continue;
    }
    // Before it is asked whether anything moved: a message that is done in between has moved.
    const bool holds = socket.signs != nullptr && socket.signs->held > 0;
    const uint64_t now = received(socket.fd);
    if (socket.signs != nullptr && socket.signs->moved.exchange(false)) socket.heard_bytes = now;
    (holds ? held : silent).emplace_back(now - std::min(now, socket.heard_bytes), socket.fd);
  }
  AddGreediest(std::move(silent), limits_.silent_bytes, limits_.all_silent_bytes, greedy);
  AddGreediest(std::move(held), limits_.held_bytes, limits_.all_held_bytes, greedy);
  std::erase_if(open_, [&](const OpenSocket& socket) {
    return std::ranges::find(greedy, socket.fd, &Greed::fd) != greedy.end();
  });
  Recount();
  return greedy;
}

void ConnectionLedger::AddGreediest(Bytes bytes, uint64_t limit, uint64_t limit_of_all,
                                    std::vector<Greed>& greedy) {
  uint64_t all = 0;
  for (const auto& [count, fd] : bytes) all += count;
  std::ranges::sort(bytes, std::greater<>());
  for (const auto& [count, fd] : bytes) {
    if (count <= limit && all <= limit_of_all) return;
    greedy.push_back({.fd = fd, .of = Of::kBytes});
    all -= count;
  }
}

void ConnectionLedger::Look(MonoTime now) {
  if (ever_looked_ && now - looked_ < kLookInterval) return;
  ever_looked_ = true;
  looked_ = now;
  std::erase_if(open_, [this](const OpenSocket& socket) { return !alive_(socket); });
  Recount();
}

void ConnectionLedger::Recount() {
  by_host_.clear();
  for (const OpenSocket& socket : open_) ++by_host_[socket.host];
}

}  // namespace atoll
