#include "monitoring/endpoint.h"

#include <netdb.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/file_descriptor.h"
#include "common/status.h"
#include "prometheus/exposer.h"

namespace atoll {
namespace {

/// The web server below takes numbers only.
BindAddress Numeric(BindAddress address) {
  if (address.host == "localhost") address.host = "127.0.0.1";
  return address;
}

std::vector<std::string> ServerOptions(const BindAddress& address) {
  // A scraper that hangs must not keep one of the two threads for long.
  return {"listening_ports", address.ToString(), "num_threads", "2", "request_timeout_ms", "10000"};
}

/// Connects and hangs up.
void Knock(const BindAddress& address) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found) != 0) return;
  const FileDescriptor socket(::socket(found->ai_family, found->ai_socktype | SOCK_CLOEXEC, 0));
  ::connect(socket.get(), found->ai_addr, found->ai_addrlen);
  ::freeaddrinfo(found);
}

}  // namespace

absl::StatusOr<std::unique_ptr<MetricsEndpoint>> MetricsEndpoint::Start(const std::string& address,
                                                                        const MetricsRegistry& registry) {
  ATOLL_ASSIGN_OR_RETURN(const BindAddress parsed, ParseBindAddress(address));
  BindAddress where = Numeric(parsed);
  // The web server does not say why it could not listen.
  ATOLL_RETURN_IF_ERROR(CheckBindable(where));
  std::unique_ptr<prometheus::Exposer> exposer;
  try {
    exposer = std::make_unique<prometheus::Exposer>(ServerOptions(where));
  } catch (const std::exception& e) {
    return absl::UnavailableError(
        absl::StrFormat("cannot serve metrics on %s: %s", where.ToString(), e.what()));
  }
  exposer->RegisterCollectable(registry.collectable());
  const std::vector<int> ports = exposer->GetListeningPorts();
  if (!ports.empty()) where.port = static_cast<uint16_t>(ports.front());
  return std::unique_ptr<MetricsEndpoint>(new MetricsEndpoint(std::move(exposer), where));
}

MetricsEndpoint::MetricsEndpoint(std::unique_ptr<prometheus::Exposer> exposer, BindAddress address)
    : exposer_(std::move(exposer)), address_(std::move(address)) {}

MetricsEndpoint::~MetricsEndpoint() {
  // The web server's thread looks whether it shall stop every two seconds, or when somebody connects.
  std::atomic<bool> stopped{false};
  std::thread knocking([&] {
    while (!stopped) {
      Knock(address_);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  });
  exposer_.reset();
  stopped = true;
  knocking.join();
}

}  // namespace atoll
