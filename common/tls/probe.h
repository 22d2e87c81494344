#ifndef ATOLL_COMMON_TLS_PROBE_H_
#define ATOLL_COMMON_TLS_PROBE_H_

#include <cstdint>
#include <string>

#include "common/clock.h"

namespace atl {

/// The ports of a coordinator that clients call.
enum class CoordinatorPort { kData, kAdmin };

/// How a client is about to connect.
struct ProbeOptions {
  std::string host;
  uint16_t port = 0;
  CoordinatorPort wanted = CoordinatorPort::kData;
  bool tls = false;
  std::string roots;        // PEM; empty: this system's
  std::string certificate;  // PEM, as the key; empty: none
  std::string key;
  std::string server_name;        // that the certificate must be for; empty: the host
  Duration timeout = Seconds(2);  // for each step
};

/// What a probe found.
struct ProbeFinding {
  std::string text;  // what is wrong, and what to do; empty: nothing was found
  /// Nobody but a person can change it: no coordinator that is merely away, or just starting, looks like
  /// this.
  bool looks_permanent = false;
};

/// As WhyNoConnection. Names that are not known and ports of another protocol are found besides.
ProbeFinding Probe(const ProbeOptions& options);

/// Why a connection to a coordinator does not come about, and what to do: gRPC says that a handshake failed
/// and seldom why. Connects once more, by itself, and looks: an expired certificate, another CA, another
/// name, plain text on one side only, a certificate that the coordinator does not take. Empty: it found
/// nothing wrong that has to do with certificates (nobody listens there, for one). Blocks for some seconds at
/// most.
std::string WhyNoConnection(const ProbeOptions& options);

}  // namespace atl

#endif  // ATOLL_COMMON_TLS_PROBE_H_
