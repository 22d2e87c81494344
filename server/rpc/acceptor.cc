#include "server/rpc/acceptor.h"

#include <arpa/inet.h>
#include <malloc.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/errno.h"
#include "common/status.h"
#include "server/rpc/received_bytes.h"

namespace atl {
namespace {

constexpr int kAcceptedAtOnce = 16;
constexpr Duration kTrimDelay = Seconds(0.1);
constexpr Duration kLastTrim = Seconds(15);  // on a busy machine gRPC takes its time
// When the system has no descriptor left: one may be closed meanwhile.
constexpr int kBreatherMs = 100;

void SetInt(int fd, int level, int option, int value) {
  ::setsockopt(fd, level, option, &value, sizeof(value));
}

/// A socket that listens there, or why there is none.
absl::StatusOr<FileDescriptor> ListenOn(const addrinfo& where, bool both_families) {
  FileDescriptor socket(
      ::socket(where.ai_family, where.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, where.ai_protocol));
  if (!socket.valid()) return ErrnoToStatus(errno, "socket");
  SetInt(socket.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (where.ai_family == AF_INET6) SetInt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, both_families ? 0 : 1);
  if (::bind(socket.get(), where.ai_addr, where.ai_addrlen) != 0) return ErrnoToStatus(errno, "bind");
  if (::listen(socket.get(), SOMAXCONN) != 0) return ErrnoToStatus(errno, "listen");
  return socket;
}

uint16_t PortOf(int fd) {
  sockaddr_storage bound = {};
  socklen_t size = sizeof(bound);
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &size) != 0) return 0;
  return ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6*>(&bound)->sin6_port
                                           : reinterpret_cast<const sockaddr_in*>(&bound)->sin_port);
}

struct Places {
  Places(const std::string& host, uint16_t port) {
    addrinfo hints = {};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
    error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &first);
  }
  ~Places() {
    if (first != nullptr) ::freeaddrinfo(first);
  }
  Places(const Places&) = delete;
  Places& operator=(const Places&) = delete;

  addrinfo* first = nullptr;
  int error = 0;
};

/// All addresses of the host; the second and later ones on the port that the first got.
absl::StatusOr<std::vector<FileDescriptor>> ListenOnAll(const std::string& host, uint16_t port,
                                                        bool both_families) {
  const Places places(host, port);
  if (places.error != 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("'%s' is not an address of this machine (%s)", host, ::gai_strerror(places.error)));
  }
  std::vector<FileDescriptor> listening;
  absl::Status failed = absl::OkStatus();
  for (addrinfo* where = places.first; where != nullptr; where = where->ai_next) {
    if (!listening.empty() && port == 0) {
      const uint16_t got = htons(PortOf(listening.front().get()));
      if (where->ai_family == AF_INET) reinterpret_cast<sockaddr_in*>(where->ai_addr)->sin_port = got;
      if (where->ai_family == AF_INET6) reinterpret_cast<sockaddr_in6*>(where->ai_addr)->sin6_port = got;
    }
    auto socket = ListenOn(*where, both_families);
    if (!socket.ok()) {
      failed = socket.status();
      continue;
    }
    listening.push_back(*std::move(socket));
  }
  if (listening.empty()) return failed;
  return listening;
}

/// Ends a connection for its server, which closes the descriptor, and for its peer, which is reset: a mere
/// shutdown would leave what has arrived to be read, which is megabytes, and the peer to wait.
void Abort(int fd) {
  sockaddr nowhere = {};
  nowhere.sa_family = AF_UNSPEC;
  if (::connect(fd, &nowhere, sizeof(nowhere)) != 0) ::shutdown(fd, SHUT_RDWR);
}

bool IsAny(const std::string& host) { return host == "0.0.0.0" || host == "::"; }

/// The peer's IP address, an IPv4 one in its own notation also on a socket of both families.
std::string HostOf(const sockaddr_storage& peer) {
  char text[INET6_ADDRSTRLEN] = {};
  if (peer.ss_family == AF_INET) {
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(&peer)->sin_addr, text, sizeof(text));
    return text;
  }
  const in6_addr& address = reinterpret_cast<const sockaddr_in6*>(&peer)->sin6_addr;
  if (IN6_IS_ADDR_V4MAPPED(&address)) {
    ::inet_ntop(AF_INET, address.s6_addr + 12, text, sizeof(text));
    return text;
  }
  // A /64 is what one subscriber has.
  in6_addr network = address;
  std::fill(network.s6_addr + 8, network.s6_addr + 16, uint8_t{0});
  ::inet_ntop(AF_INET6, IN6_IS_ADDR_LOOPBACK(&address) ? &address : &network, text, sizeof(text));
  return text;
}

/// Address and port as gRPC's names of peers have them, without the family.
std::string PeerText(const sockaddr_storage& peer) {
  if (peer.ss_family == AF_INET) {
    return absl::StrCat(HostOf(peer), ":", ntohs(reinterpret_cast<const sockaddr_in*>(&peer)->sin_port));
  }
  const auto& v6 = *reinterpret_cast<const sockaddr_in6*>(&peer);
  const uint16_t port = ntohs(v6.sin6_port);
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) return absl::StrCat(HostOf(peer), ":", port);
  char text[INET6_ADDRSTRLEN] = {};
  ::inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
  return absl::StrCat("[", text, "]:", port);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Acceptor>> Acceptor::Listen(const BindAddress& address,
                                                           AcceptorOptions options) {
  // As gRPC does: any interface means both families, where there are two.
  absl::StatusOr<std::vector<FileDescriptor>> listening = absl::UnavailableError("");
  if (IsAny(address.host)) listening = ListenOnAll("::", address.port, true);
  if (!listening.ok()) listening = ListenOnAll(address.host, address.port, false);
  if (!listening.ok()) {
    const std::string why(listening.status().message());
    return absl::Status(listening.status().code(),
                        absl::StrFormat("cannot listen on %s: %s", address.ToString(), why));
  }
  BindAddress bound = address;
  bound.port = PortOf(listening->front().get());
  std::unique_ptr<Acceptor> acceptor(new Acceptor(bound, std::move(options), *std::move(listening)));
  if (!acceptor->wake_.valid()) return ErrnoToStatus(errno, "eventfd");
  return acceptor;
}

Acceptor::Acceptor(BindAddress address, AcceptorOptions options, std::vector<FileDescriptor> listening)
    : address_(std::move(address)),
      options_(std::move(options)),
      listening_(std::move(listening)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      limiter_(options_.limits) {}

Acceptor::~Acceptor() { Stop(); }

void Acceptor::Start(Handoff handoff, const Clock* clock, CountStreams count) {
  handoff_ = std::move(handoff);
  count_ = std::move(count);
  clock_ = clock;
  thread_ = std::thread([this] { Run(); });
}

void Acceptor::Stop() {
  stopping_ = true;
  ::eventfd_write(wake_.get(), 1);
  if (thread_.joinable()) thread_.join();
  listening_.clear();
}

void Acceptor::EndConnections() {
  for (const OpenSocket& socket : limiter_.open()) {
    if (IsStillOpen(socket)) ::shutdown(socket.fd, SHUT_RDWR);
  }
}

void Acceptor::Run() {
  std::vector<pollfd> watched;
  for (const FileDescriptor& socket : listening_) watched.push_back({socket.get(), POLLIN, 0});
  watched.push_back({wake_.get(), POLLIN, 0});
  while (!stopping_) {
    // Connections that were ended and are not closed yet keep their memory. New ones, which could fill more,
    // wait at the system's door meanwhile.
    const bool full = limiter_.Full(clock_->Now());
    ::poll(full ? &watched.back() : watched.data(), full ? 1 : watched.size(), MillisecondsToNextLook());
    for (size_t i = 0; i + 1 < watched.size() && !stopping_ && !full; ++i) {
      if ((watched[i].revents & POLLIN) == 0 || AcceptAll(watched[i].fd)) continue;
      // Waiting connections keep the socket readable.
      ::poll(&watched.back(), 1, kBreatherMs);
    }
    const MonoTime now = clock_->Now();
    EndGreedy(now);
    TrimSometimes(now);
    CountSometimes(now);
  }
}

bool Acceptor::AcceptAll(int listening) {
  // Others, the order to stop, and looks at what the connections bring come in between.
  for (int i = 0; i < kAcceptedAtOnce; ++i) {
    sockaddr_storage peer = {};
    socklen_t size = sizeof(peer);
    FileDescriptor connection(
        ::accept4(listening, reinterpret_cast<sockaddr*>(&peer), &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (connection.valid()) {
      Take(std::move(connection), peer);
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    return errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM;
  }
  return true;
}

void Acceptor::Take(FileDescriptor connection, const sockaddr_storage& peer) {
  OpenSocket open{.fd = connection.get(),
                  .cookie = SocketCookie(connection.get()),
                  .host = HostOf(peer),
                  .peer = PeerText(peer)};
  if (options_.progress != nullptr) open.signs = options_.progress->Open(open.peer);
  auto verdict = limiter_.Admit(open, clock_->Now());
  if (verdict != ConnectionLimiter::Verdict::kAdmitted && options_.when_full == WhenFull::kEndOldest) {
    if (options_.on_rejected) options_.on_rejected(verdict);
    Abort(limiter_.ForgetOldest());
    verdict = limiter_.Admit(open, clock_->Now());
  }
  if (verdict != ConnectionLimiter::Verdict::kAdmitted) {
    if (options_.on_rejected) options_.on_rejected(verdict);
    return;  // hangs up
  }
  SetInt(connection.get(), IPPROTO_TCP, TCP_NODELAY, 1);
  SetInt(connection.get(), IPPROTO_TCP, TCP_USER_TIMEOUT,
         static_cast<int>(
             std::chrono::duration_cast<std::chrono::milliseconds>(options_.unacknowledged).count()));
  handoff_(std::move(connection));
}

int Acceptor::MillisecondsToNextLook() const {
  const auto left = looked_ + limiter_.UntilNextLook() - clock_->Now();
  const auto up = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  return static_cast<int>(std::clamp<int64_t>(up, 1, 100));
}

void Acceptor::EndGreedy(MonoTime now) {
  if (now - looked_ < limiter_.UntilNextLook()) return;
  looked_ = now;
  const std::vector<ConnectionLimiter::Violation> violations =
      limiter_.TakeViolations(ReceivedBytes, count_, now);
  for (const std::string& peer : limiter_.TakeUnheard()) {
    if (options_.on_ended_unheard) options_.on_ended_unheard(peer);
  }
  for (const auto& [fd, of] : violations) {
    Abort(fd);
    if (options_.on_greedy) options_.on_greedy(of);
  }
  if (violations.empty()) return;
  trim_after_ = kTrimDelay;
  trim_at_ = now + trim_after_;
}

void Acceptor::TrimSometimes(MonoTime now) {
  // Memory of the largest connections is scattered over the heap, and is free once their server has
  // noticed that they are gone.
  if (!trim_at_ || now < *trim_at_) return;
  ::malloc_trim(0);
  trim_after_ *= 3;
  trim_at_.reset();
  if (trim_after_ <= kLastTrim) trim_at_ = now + trim_after_;
}

void Acceptor::CountSometimes(MonoTime now) {
  if (!options_.on_count || now - counted_ < Seconds(1)) return;
  counted_ = now;
  options_.on_count(limiter_.Count(now));
}

}  // namespace atl
