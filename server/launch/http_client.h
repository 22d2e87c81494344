#ifndef ATOLL_SERVER_LAUNCH_HTTP_CLIENT_H_
#define ATOLL_SERVER_LAUNCH_HTTP_CLIENT_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/mutex.h"

namespace atl {

struct HttpClientOptions {
  std::string base_url = {};  // https://HOST:PORT
  std::string ca_file = {};   // the only trusted authority
  Duration connect_timeout = Seconds(5);
  Duration timeout = Seconds(10);  // of a whole exchange
};

struct HttpRequest {
  std::string method = "GET";
  std::string path = {};  // with the query
  std::string content_type = {};
  std::string body = {};
  std::string bearer_token = {};
};

struct HttpResponse {
  int status = 0;
  std::string body;
  std::optional<Duration> retry_after;
};

/// HTTPS to one server, whose certificate is verified against one authority. Follows no redirects and uses no
/// proxy, so that the token goes only to this server. Thread-safe; one exchange at a time.
class HttpClient {
 public:
  static absl::StatusOr<std::unique_ptr<HttpClient>> Create(HttpClientOptions options);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  /// Any answer with a status line is OK.
  ///   DeadlineExceeded    the answer did not arrive completely in time
  ///   Unavailable         the server is unreachable or closed the connection
  ///   Unauthenticated     the server's certificate is wrong, or the CA file is unreadable
  ///   ResourceExhausted   the answer is larger than 16 MiB
  absl::StatusOr<HttpResponse> Exchange(const HttpRequest& request);

 private:
  struct Handle;
  HttpClient(HttpClientOptions options, std::unique_ptr<Handle> handle);

  const HttpClientOptions options_;
  Mutex mutex_;
  const std::unique_ptr<Handle> handle_ ABSL_PT_GUARDED_BY(mutex_);
};

/// Escapes a text for a query.
std::string PercentEncoded(const std::string& text);

}  // namespace atl

#endif  // ATOLL_SERVER_LAUNCH_HTTP_CLIENT_H_
