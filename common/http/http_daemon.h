#ifndef ATOLL_COMMON_HTTP_HTTP_DAEMON_H_
#define ATOLL_COMMON_HTTP_HTTP_DAEMON_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/file_descriptor.h"
#include "common/http/connection_table.h"
#include "common/http/exchange.h"

namespace atl {

/// PEM, as read from the files.
struct WebTls {
  std::string certificate;  // the chain
  std::string key;
  friend bool operator==(const WebTls&, const WebTls&) = default;
};

struct HttpLimits {
  size_t connections = 256;
  size_t connections_per_address = 128;  // 0: no limit
  /// From this many connections on, each new one closes the longest-waiting connection of the address with
  /// the most connections, so that silent clients cannot keep others out. 0: never.
  size_t crowded = 0;
  size_t connection_bytes = size_t{32}
                            << 10;  // request line and headers of request and reply, without bodies
  size_t body_bytes = size_t{16} << 10;
  Duration idle = Seconds(10);
  /// Leave out a request whose client has closed the connection, or its side of it, before a task of `post`
  /// begins with it.
  bool skip_gone_clients = false;
};

/// libmicrohttpd on one listening socket: one thread for all connections, and `post` for work that may block.
/// It answers malformed requests itself (400, 413, 414, 431).
class HttpDaemon {
 public:
  struct Parts {
    /// Called in a task of `post`, or on the daemon's thread when `is_quick` says so.
    std::function<WebReply(const WebRequest&)> answer;
    std::function<bool(const WebRequest&)> is_quick;
    /// Runs a task on another thread. Returns false if there are too many tasks; the client then gets 503.
    std::function<bool(std::function<void()>)> post;
    ConnectionTable* connections = nullptr;
    /// The JSON of an error that the daemon finds itself (413, 503), by HTTP status and message. Null: that
    /// of ErrorReply.
    std::function<std::string(int, const std::string&)> error_body = nullptr;
  };

  /// `listener` listens; the daemon has a duplicate of it. Everything in `parts` outlives the daemon.
  /// InvalidArgument if certificate and key are invalid or do not match.
  static absl::StatusOr<std::unique_ptr<HttpDaemon>> Start(const FileDescriptor& listener,
                                                           const std::optional<WebTls>& tls,
                                                           const HttpLimits& limits, Parts parts);
  /// Closes its connections. No task of `post` may be running: see working().
  ~HttpDaemon();

  /// Accepts no new connections; existing ones continue. Idempotent.
  void StopListening();
  /// Number of requests that `post` has accepted and that are not answered yet.
  size_t working() const;

  /// Of the implementation.
  struct State;

 private:
  explicit HttpDaemon(std::unique_ptr<State> state);

  const std::unique_ptr<State> state_;
};

}  // namespace atl

#endif  // ATOLL_COMMON_HTTP_HTTP_DAEMON_H_
