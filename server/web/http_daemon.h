#ifndef ATOLL_SERVER_WEB_HTTP_DAEMON_H_
#define ATOLL_SERVER_WEB_HTTP_DAEMON_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/file_descriptor.h"
#include "server/rpc/io_pool.h"
#include "server/web/connection_table.h"
#include "server/web/exchange.h"

namespace atoll {

/// PEM, as read from the files.
struct WebTls {
  std::string certificate;  // the chain
  std::string key;
  friend bool operator==(const WebTls&, const WebTls&) = default;
};

struct HttpLimits {
  size_t connections = 256;
  size_t connections_per_address = 128;
  size_t connection_bytes = size_t{32} << 10;  // request line, headers, and the reply's: all but bodies
  size_t body_bytes = size_t{16} << 10;
  Duration idle = Seconds(10);
};

/// libmicrohttpd over one listening socket: one thread for all connections, and a pool for what may block.
/// What it cannot make sense of it answers itself (400, 413, 414, 431).
class HttpDaemon {
 public:
  struct Parts {
    /// Called in the pool, or on the daemon's thread when `is_quick` says so.
    std::function<WebReply(const WebRequest&)> answer;
    std::function<bool(const WebRequest&)> is_quick;
    IoPool* pool = nullptr;
    ConnectionTable* connections = nullptr;
  };

  /// `listener` listens; the daemon has a duplicate of it. Everything in `parts` outlives the daemon.
  /// InvalidArgument: certificate and key do not fit or are none.
  static absl::StatusOr<std::unique_ptr<HttpDaemon>> Start(const FileDescriptor& listener,
                                                           const std::optional<WebTls>& tls,
                                                           const HttpLimits& limits, Parts parts);
  /// Ends its connections. No request may be in the pool any more: see working().
  ~HttpDaemon();

  /// Takes no new connections; those that are there go on. Idempotent.
  void StopListening();
  /// Requests that the pool has.
  size_t working() const;

  /// Of the implementation.
  struct State;

 private:
  explicit HttpDaemon(std::unique_ptr<State> state);

  const std::unique_ptr<State> state_;
};

}  // namespace atoll

#endif  // ATOLL_SERVER_WEB_HTTP_DAEMON_H_
