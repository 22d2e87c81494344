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
  Duration longest_wait = Seconds(30);  // if the server asks for a longer wait, the call fails
  uint64_t seed = 0;                    // of the jitter
};

/// One call, with the permission that it needs, for the error message if that permission is missing.
struct KubernetesCall {
  std::string method = "GET";
  std::string path = {};
  std::string content_type = {};
  std::string body = {};
  std::string verb = {};        // get, list, patch, delete
  std::string resource = {};    // pods, statefulsets/scale
  std::string api_group = {};   // "" for the core one
  std::string name_space = {};  // for the message
  /// Called before each attempt, while no other call is in progress. If it returns true, the request is
  /// outdated and the call ends with Cancelled. Must not call the API. Empty: never.
  std::function<bool()> overtaken = {};
};

/// Calls a cluster's API server with a service account's token. Reads the token file for every call, so that
/// a rotated token is used immediately; the token never appears in an error. Retries 409, 429 (after
/// Retry-After), 5xx, timeouts and broken connections with backoff, and 401 once with a reloaded token.
/// Thread-safe; calls run one at a time and may take `attempts` timeouts and waits.
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
