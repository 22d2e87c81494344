#ifndef ATOLL_COMMON_TLS_PROBE_H_
#define ATOLL_COMMON_TLS_PROBE_H_

#include <cstdint>
#include <string>

#include "common/clock.h"

namespace atl {

/// The ports of a coordinator that clients call.
enum class CoordinatorPort { kData, kAdmin };

/// The settings with which a client connects.
struct ProbeOptions {
  std::string host;
  uint16_t port = 0;
  CoordinatorPort wanted = CoordinatorPort::kData;
  bool tls = false;
  std::string roots;        // PEM; empty: this system's
  std::string certificate;  // PEM, as the key; empty: none
  std::string key;
  std::string certificate_file;   // of `certificate`, for messages; empty: not named
  std::string server_name;        // the name that the certificate must have; empty: the host
  Duration timeout = Seconds(2);  // for each step
};

/// The result of a probe.
struct ProbeFinding {
  std::string text;  // the problem and what to do; empty: no problem found
  /// Only a person can solve the problem. A coordinator that is away or just starting never looks like this.
  bool looks_permanent = false;
};

/// Like WhyNoConnection, but also detects unknown host names and ports of another protocol.
ProbeFinding Probe(const ProbeOptions& options);

/// Explains why a connection to a coordinator fails and what to do. gRPC reports that a handshake failed, but
/// seldom why, so this connects again and checks: an expired certificate, another CA, another name, plain
/// text on one side only, a certificate that the coordinator rejects. Empty if no problem with certificates
/// was found (for example if nobody listens there). Blocks for at most some seconds.
std::string WhyNoConnection(const ProbeOptions& options);

}  // namespace atl

#endif  // ATOLL_COMMON_TLS_PROBE_H_
