#ifndef ATOLL_SERVER_LAUNCH_KUBERNETES_API_H_
#define ATOLL_SERVER_LAUNCH_KUBERNETES_API_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/backoff.h"
#include "common/mutex.h"
#include "common/sleeper.h"
#include "server/launch/http_client.h"

namespace atl {

struct KubernetesApiOptions {
  std::string host = {};
  std::string port = "443";
  // token, ca.crt and namespace, as a pod finds them.
  std::string credentials = "/var/run/secrets/kubernetes.io/serviceaccount";
  Duration connect_timeout = Seconds(5);
  Duration timeout = Seconds(10);
  int attempts = 5;
  BackoffOptions backoff = {.initial = Seconds(0.25), .maximum = Seconds(5), .multiplier = 2};
  Duration longest_wait = Seconds(30);  // a server that asks for more patience than this gets an error
  uint64_t seed = 0;                    // of the jitter
};

/// One call: what, and what permission it takes, for the error that says which is missing.
struct KubernetesCall {
  std::string method = "GET";
  std::string path = {};
  std::string content_type = {};
  std::string body = {};
  std::string verb = {};        // get, list, patch, delete
  std::string resource = {};    // pods, statefulsets/scale
  std::string api_group = {};   // "" for the core one
  std::string name_space = {};  // for the message
  /// Asked before each attempt, while no other call is under way: true ends the call with Cancelled, for its
  /// request has been overtaken. Must not call the API. Empty: never.
  std::function<bool()> overtaken = {};
};

/// Calls to a cluster's API server with a service account's token. The token file is read for every call, so
/// that a rotated one is used at once; it never appears in an error. Repeats what may be repeated: 409, 429
/// (after Retry-After), 5xx, timeouts and broken connections, with backoff; 401 once, with the token read
/// again. Thread-safe; calls wait for one another, and may take `attempts` timeouts and waits.
class KubernetesApi {
 public:
  /// `sleeper` outlives it; a sleep that is cut short ends the call with Cancelled.
  static absl::StatusOr<std::unique_ptr<KubernetesApi>> Create(KubernetesApiOptions options,
                                                               Sleeper* sleeper);

  /// The body of the 2xx answer.
  ///   Unauthenticated     401 twice (or the server's certificate, or the token file): says which file
  ///   PermissionDenied    403: says which verb on which resource the service account lacks
  ///   NotFound            404
  ///   Aborted             409 until the attempts ran out
  ///   ResourceExhausted   429 until the attempts ran out, or Retry-After is beyond longest_wait
  ///   Unavailable, DeadlineExceeded   5xx, no connection, no answer in time, until the attempts ran out
  ///   Cancelled           overtaken, or the sleeper was interrupted
  ///   InvalidArgument     any other 4xx, with the server's words
  absl::StatusOr<std::string> Call(const KubernetesCall& call);

  /// The namespace of the service account.
  absl::StatusOr<std::string> OwnNamespace() const;

 private:
  KubernetesApi(KubernetesApiOptions options, std::unique_ptr<HttpClient> http, Sleeper* sleeper);
  struct Attempt;
  absl::StatusOr<std::string> ReadToken() const;
  Attempt Try(const KubernetesCall& call) ABSL_LOCKS_EXCLUDED(mutex_);
  Duration NextWait(Backoff& backoff, const Attempt& attempt) const;

  const KubernetesApiOptions options_;
  const std::unique_ptr<HttpClient> http_;
  Sleeper* const sleeper_;
  Mutex mutex_;  // held while a request is under way
};

}  // namespace atl

#endif  // ATOLL_SERVER_LAUNCH_KUBERNETES_API_H_
