#ifndef ATOLL_SERVER_RPC_SERVER_OPTIONS_H_
#define ATOLL_SERVER_RPC_SERVER_OPTIONS_H_

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "common/clock.h"
#include "common/tls/live_certificates.h"
#include "server/access/access_policy.h"
#include "server/access/token_store.h"
#include "server/rpc/connection_limiter.h"

namespace atl {

/// Who may reach the ports. Without certificates anything but this machine has to be asked for.
enum class Exposure { kLoopbackOnly, kAnyInterface };

/// With TLS: whether clients show a certificate. Verified if one is shown, whichever it is.
enum class ClientCertificates { kNone, kOptional, kRequired };

/// How the ports are secured. The defaults are a run in plain text that asks nobody.
struct RpcSecurity {
  const LiveCertificates* certificates = nullptr;  // null: plain text. Outlives the server, as the others
  ClientCertificates client_certificates = ClientCertificates::kNone;
  const AccessPolicy* access = nullptr;  // null: nobody is asked
  TokenStore* tokens = nullptr;          // null: there are none
  std::string warning;                   // shown with the status
};

struct RpcServerOptions {
  std::string data_address = "127.0.0.1:7600";  // port 0: any free one
  std::string admin_address = "127.0.0.1:7601";
  Exposure exposure = Exposure::kLoopbackOnly;
  RpcSecurity security;
  size_t call_threads = 4;
  size_t upload_threads = 4;        // chunks written to the disk at the same time
  size_t sync_threads = 4;          // whole uploads checked and synced at the same time
  size_t admin_threads = 4;         // actions of operators at the same time
  size_t max_waiting_calls = 4096;  // beyond it calls are told to come back
  int max_streams_per_connection = 256;
  size_t max_streams = 8192;                // of all connections: pushes, pulls, seeds, watchers
  ConnectionLimits connections = {};        // of the data port
  ConnectionLimits admin_connections = {};  // of the admin port
  size_t buffer_bytes =
      size_t{512} << 20;  // that gRPC may hold of messages on their way, both ports together
  Duration handshake_timeout = Seconds(10);     // from connecting to the end of TLS's and HTTP/2's greetings
  Duration connection_idle = Seconds(300);      // a connection without a call for that long is ended
  Duration max_connection_age = Seconds(3600);  // with TLS: then a client is asked to reconnect
  Duration stall_limit = Seconds(60);           // a stream without a message for this long is ended
  Duration watchdog_period = Seconds(1);
  Duration shutdown_grace = Seconds(5);  // for calls in progress
  size_t max_watch_backlog = 16384;      // events that a slow watcher may be behind
  size_t max_watchers = 64;              // at the same time; each may hold a backlog
  size_t max_observer_pulls = 64;        // at the same time; workers' pulls are bounded by max_streams only
  /// Called for each pull that was streamed to its end, with the seconds from the coordinator's answer to the
  /// last byte. From any thread; must not block. May be empty.
  std::function<void(double seconds)> on_pull_streamed;
  /// Called for each heartbeat, with the seconds from its arrival here to its answer. Likewise.
  std::function<void(double seconds)> on_heartbeat;
  /// A connection to this port ("data", "admin") was refused, because of "total" or "address", or ended, for
  /// its "bytes" or "streams". Likewise.
  std::function<void(std::string_view port, std::string_view limit)> on_connection_rejected;
  /// Connections to this port, now and then. Likewise.
  std::function<void(std::string_view port, size_t count)> on_connections;
  /// A call was refused: the reason of docs/reference/wire_format.md in lower case, else the status code's.
  /// Likewise.
  std::function<void(std::string_view reason)> on_call_rejected;
  /// A call was denied because of who made it: UNAUTHENTICATED or PERMISSION_DENIED. `peer` is an address and
  /// a port; `why` holds no secret. Likewise.
  std::function<void(const std::string& peer, const absl::Status& why)> on_call_denied;
  /// Connections from this peer ended before any call came of them: with TLS, most of these are handshakes
  /// that failed. Likewise.
  std::function<void(const std::string& peer)> on_ended_unheard;
};

/// Bounds of docs/reference/wire_format.md.
inline constexpr int kMaxMessageBytes = 2 << 20;

}  // namespace atl

#endif  // ATOLL_SERVER_RPC_SERVER_OPTIONS_H_
