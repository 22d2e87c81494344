#include "bench/exchange/meter.h"

#include <sys/socket.h>

#include <utility>

#include "bench/exchange/sockets.h"
#include "common/status.h"

namespace atl {

absl::StatusOr<std::unique_ptr<Meter>> Meter::Start(const std::string& target) {
  ATOLL_ASSIGN_OR_RETURN(TcpListener listener, TcpListen());
  return std::unique_ptr<Meter>(new Meter(std::move(listener.socket), listener.address, target));
}

Meter::Meter(FileDescriptor listener, std::string address, std::string target)
    : listener_(std::move(listener)),
      address_(std::move(address)),
      target_(std::move(target)),
      acceptor_([this] { Accept(); }) {}

Meter::~Meter() {
  ::shutdown(listener_.get(), SHUT_RDWR);
  acceptor_.join();
  {
    MutexLock lock(&mutex_);
    for (const FileDescriptor& socket : sockets_) ::shutdown(socket.get(), SHUT_RDWR);
  }
  for (std::thread& copier : copiers_) copier.join();
}

void Meter::Accept() {
  while (true) {
    FileDescriptor client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!client.valid()) return;
    absl::StatusOr<FileDescriptor> server = TcpConnect(target_);
    if (!server.ok()) continue;
    const int from = client.get();
    const int to = server->get();
    {
      MutexLock lock(&mutex_);
      sockets_.push_back(std::move(client));
      sockets_.push_back(*std::move(server));
    }
    copiers_.emplace_back([=, this] { Copy(from, to, &up_); });
    copiers_.emplace_back([=, this] { Copy(to, from, &down_); });
  }
}

void Meter::Copy(int from, int to, std::atomic<uint64_t>* count) {
  std::vector<char> buffer(size_t{1} << 18);
  while (true) {
    const ssize_t n = ::recv(from, buffer.data(), buffer.size(), 0);
    if (n <= 0 || !WriteAll(to, buffer.data(), static_cast<size_t>(n)).ok()) break;
    *count += static_cast<uint64_t>(n);
  }
  ::shutdown(to, SHUT_WR);
}

}  // namespace atl
