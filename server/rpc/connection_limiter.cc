#include "server/rpc/connection_limiter.h"

#include <sys/socket.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <utility>

namespace atl {
namespace {

// A connection that has this part of what it may have is looked at more often, and so are all when they have
// it together.
constexpr uint64_t kUneasyShare = 8;
constexpr size_t kMostUnheard = 1024;
// This part of all silent bytes stays for new connections, whatever those that were ended still hold.
constexpr uint64_t kLeftShare = 4;

}  // namespace

uint64_t SocketCookie(int fd) {
  uint64_t cookie = 0;
  socklen_t size = sizeof(cookie);
  return ::getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &size) == 0 ? cookie : 0;
}

bool IsStillOpen(const OpenSocket& socket) {
  const uint64_t cookie = SocketCookie(socket.fd);
  return cookie != 0 && cookie == socket.cookie;
}

ConnectionLimiter::Verdict ConnectionLimiter::Judge(const std::string& host) const {
  if (open_.size() >= limits_.total) return Verdict::kTooMany;
  const auto found = by_host_.find(host);
  const size_t of_host = found == by_host_.end() ? 0 : found->second;
  return of_host >= limits_.per_address ? Verdict::kTooManyOfAddress : Verdict::kAdmitted;
}

ConnectionLimiter::Verdict ConnectionLimiter::Admit(const OpenSocket& socket, MonoTime now) {
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

int ConnectionLimiter::ForgetOldest() {
  // They stand in the order in which they were admitted.
  ForgetGone();
  Recount();
  const auto most = std::ranges::max_element(by_host_, {}, [](const auto& host) { return host.second; });
  if (most == by_host_.end()) return -1;
  const auto oldest = std::ranges::find(open_, most->first, &OpenSocket::host);
  const int fd = oldest->fd;
  open_.erase(oldest);
  Recount();
  return fd;
}

size_t ConnectionLimiter::Count(MonoTime now) {
  Look(now);
  return open_.size();
}

std::vector<ConnectionLimiter::Violation> ConnectionLimiter::TakeViolations(
    const std::function<uint64_t(int fd)>& received, const CountStreams& count, MonoTime now) {
  ForgetGone();
  Amounts silent;
  Amounts held;
  for (OpenSocket& socket : open_) {
    // Before it is asked whether anything moved: a message that is done in between has moved.
    const bool holds = socket.signs != nullptr && socket.signs->held > 0;
    const uint64_t bytes = received(socket.fd);
    if (socket.signs != nullptr && socket.signs->moved.exchange(false)) {
      socket.heard_bytes = bytes;
      socket.heard = true;
    }
    socket.held_back = bytes - std::min(bytes, socket.heard_bytes);
    (holds ? held : silent)
        .push_back({.amount = socket.held_back,
                    .fd = socket.fd,
                    .host = &socket.host,
                    .useful = socket.heard && socket.held_back <= kOneMessage});
    socket.received = bytes;
  }
  const uint64_t silent_bytes = Sum(silent);
  under_pressure_ = Most(silent) > limits_.silent_bytes / kUneasyShare ||
                    silent_bytes > limits_.all_silent_bytes / kUneasyShare;
  std::vector<Violation> violations;
  AddLargestViolations(Of::kBytes, silent, limits_.silent_bytes, limits_.all_silent_bytes, violations);
  std::erase_if(silent, [&](const Amount& each) {
    return each.useful || std::ranges::find(violations, each.fd, &Violation::fd) != violations.end();
  });
  AddLargestViolations(Of::kBytes, std::move(silent), limits_.silent_bytes, LeftBeside(EndingBytes(now)),
                       violations);
  AddLargestViolations(Of::kBytes, std::move(held), limits_.held_bytes, limits_.all_held_bytes, violations);
  Forget(violations, now);
  // Counting takes long on a busy machine, and bytes go on coming meanwhile.
  const bool flooded = !violations.empty();
  if (count && (!flooded || now - counted_ >= kLookInterval)) {
    counted_ = now;
    CountThem(flooded ? kMostCountedInFlood : kMostCounted, count);
  }
  Amounts streams;
  for (const OpenSocket& socket : open_) {
    streams.push_back({.amount = socket.streams, .fd = socket.fd, .host = &socket.host});
  }

  under_pressure_ = under_pressure_ || Most(streams) > limits_.open_streams / kUneasyShare ||
                    Sum(streams) > limits_.all_open_streams / kUneasyShare;
  std::vector<Violation> many;
  AddLargestViolations(Of::kStreams, std::move(streams), limits_.open_streams, limits_.all_open_streams,
                       many);
  Forget(many, now);
  violations.insert(violations.end(), many.begin(), many.end());
  return violations;
}

uint64_t ConnectionLimiter::LeftBeside(uint64_t ending) const {
  const uint64_t all = limits_.all_silent_bytes;
  return std::max(all - std::min(all, ending), all / kLeftShare);
}

bool ConnectionLimiter::Full(MonoTime now) { return EndingBytes(now) > limits_.all_silent_bytes / 2; }

uint64_t ConnectionLimiter::Sum(const Amounts& amounts) {
  uint64_t all = 0;
  for (const Amount& each : amounts) all += each.amount;
  return all;
}

uint64_t ConnectionLimiter::Most(const Amounts& amounts) {
  return amounts.empty() ? 0 : std::ranges::max(amounts, {}, &Amount::amount).amount;
}

void ConnectionLimiter::Forget(const std::vector<Violation>& violations, MonoTime now) {
  std::erase_if(open_, [&](const OpenSocket& socket) {
    if (std::ranges::find(violations, socket.fd, &Violation::fd) == violations.end()) return false;
    ending_.push_back({.socket = socket, .bytes = socket.held_back, .since = now});
    return true;
  });
  Recount();
}

uint64_t ConnectionLimiter::EndingBytes(MonoTime now) {
  std::erase_if(
      ending_, [&](const Ending& each) { return now - each.since > kLongestEnding || !alive_(each.socket); });
  uint64_t all = 0;
  for (const Ending& each : ending_) all += each.bytes;
  return all;
}

void ConnectionLimiter::AddLargestViolations(Of of, Amounts amounts, uint64_t limit, uint64_t limit_of_all,
                                             std::vector<Violation>& violations) {
  std::ranges::sort(amounts, [](const Amount& a, const Amount& b) {
    return a.useful != b.useful ? b.useful : a.amount > b.amount;
  });
  uint64_t all = 0;
  for (const Amount& each : amounts) {
    if (each.amount > limit) {
      End(of, each.fd, violations);
    } else {
      all += each.amount;
    }
  }
  if (all <= limit_of_all) return;
  // By address, the greediest connection first.
  std::map<std::string, std::pair<uint64_t, std::deque<Amount>>> hosts;
  for (const Amount& each : amounts) {
    if (each.amount > limit) continue;
    auto& [total, connections] = hosts[*each.host];
    total += each.amount;
    connections.push_back(each);
  }
  // Together they have too much: the largest holder is not always the connection in the middle of a
  // large message, but the address whose connections have most.
  while (all > limit_of_all) {
    auto& [total, connections] =
        std::ranges::max_element(hosts, {}, [](const auto& host) { return host.second.first; })->second;
    const Amount& greediest = connections.front();
    End(of, greediest.fd, violations);
    all -= greediest.amount;
    total -= greediest.amount;
    connections.pop_front();
  }
}

void ConnectionLimiter::End(Of of, int fd, std::vector<Violation>& violations) {
  if (std::ranges::find(violations, fd, &Violation::fd) == violations.end())
    violations.push_back({.fd = fd, .of = of});
}

void ConnectionLimiter::CountThem(size_t at_most, const CountStreams& count) {
  ++looks_;
  std::vector<OpenSocket*> due;
  for (OpenSocket& socket : open_) {
    const bool many = socket.streams > limits_.open_streams / kUneasyShare;
    const uint64_t since = socket.received - std::min(socket.received, socket.counted_bytes);
    if (many || since >= kCountAfterBytes) due.push_back(&socket);
  }
  std::ranges::stable_sort(due, {}, &OpenSocket::counted_at);
  due.resize(std::min(due.size(), at_most));
  if (due.empty()) return;
  std::vector<std::string> peers;
  for (const OpenSocket* socket : due) peers.push_back(socket->peer);
  const std::vector<uint64_t> counts = count(peers);
  for (size_t i = 0; i < due.size(); ++i) {
    due[i]->streams = counts[i];
    due[i]->counted_bytes = due[i]->received;
    due[i]->counted_at = looks_;
  }
}

Duration ConnectionLimiter::UntilNextLook() const {
  const Duration calm =
      std::clamp(Seconds(1e-4 * static_cast<double>(open_.size())), Seconds(0.01), kLookInterval);
  return under_pressure_ ? calm / 5 : calm;
}

void ConnectionLimiter::Look(MonoTime now) {
  if (ever_looked_ && now - looked_ < kLookInterval) return;
  ever_looked_ = true;
  looked_ = now;
  ForgetGone();
  Recount();
}

void ConnectionLimiter::ForgetGone() {
  std::erase_if(open_, [this](const OpenSocket& socket) {
    if (alive_(socket)) return false;
    const bool heard = socket.heard || (socket.signs != nullptr && socket.signs->moved);
    if (!heard && unheard_.size() < kMostUnheard) unheard_.push_back(socket.peer);
    return true;
  });
}

void ConnectionLimiter::Recount() {
  by_host_.clear();
  for (const OpenSocket& socket : open_) ++by_host_[socket.host];
}

}  // namespace atl
