#include "server/launch/kubernetes_api.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "common/file.h"
#include "common/human.h"
#include "common/status.h"
#include "nlohmann/json.hpp"

namespace atl {
namespace {

constexpr uint64_t kLargestCredential = uint64_t{1} << 20;
constexpr size_t kLongestQuote = 400;

/// What the server says of its refusal: the message of its Status object, else the beginning of the text.
std::string WordsOf(const HttpResponse& response, const std::string& token) {
  std::string words = response.body.substr(0, kLongestQuote);
  const auto object = nlohmann::json::parse(response.body, nullptr, /*allow_exceptions=*/false);
  if (object.is_object()) {
    const auto message = object.find("message");
    if (message != object.end() && message->is_string())
      words = message->get<std::string>().substr(0, kLongestQuote);
  }
  for (char& c : words) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) c = ' ';
  }
  // Errors are logged and shown; whatever stands between us and the server may echo what we sent.
  if (!token.empty()) words = absl::StrReplaceAll(words, {{token, "[token]"}});
  return words.empty() ? "no reason given" : words;
}

}  // namespace

/// One exchange, judged.
struct KubernetesApi::Attempt {
  absl::Status status = {};  // OK: body is the answer
  std::string body = {};
  bool repeat = false;
  bool rejected_token = false;  // 401
  std::optional<Duration> retry_after = {};
};

absl::StatusOr<std::unique_ptr<KubernetesApi>> KubernetesApi::Create(KubernetesApiOptions options,
                                                                     Sleeper* sleeper) {
  if (options.host.empty()) {
    return absl::InvalidArgumentError(
        "the address of the cluster's API server is unknown: KUBERNETES_SERVICE_HOST is not set, so this is "
        "not a pod; give --kube-api-host and --kube-api-port");
  }
  const std::string host =
      options.host.find(':') == std::string::npos ? options.host : "[" + options.host + "]";
  ATOLL_ASSIGN_OR_RETURN(std::unique_ptr<HttpClient> http,
                         HttpClient::Create({.base_url = absl::StrCat("https://", host, ":", options.port),
                                             .ca_file = JoinPath(options.credentials, "ca.crt"),
                                             .connect_timeout = options.connect_timeout,
                                             .timeout = options.timeout}));
  std::unique_ptr<KubernetesApi> api(new KubernetesApi(std::move(options), std::move(http), sleeper));
  ATOLL_RETURN_IF_ERROR(api->ReadToken().status());
  return api;
}

KubernetesApi::KubernetesApi(KubernetesApiOptions options, std::unique_ptr<HttpClient> http, Sleeper* sleeper)
    : options_(std::move(options)), http_(std::move(http)), sleeper_(sleeper) {}

absl::StatusOr<std::string> KubernetesApi::ReadToken() const {
  const std::string path = JoinPath(options_.credentials, "token");
  const auto contents = ReadFile(path, kLargestCredential);
  if (!contents.ok()) {
    return absl::UnauthenticatedError(absl::StrFormat("the service account's token cannot be read: %s",
                                                      std::string(contents.status().message())));
  }
  const std::string token(absl::StripAsciiWhitespace(*contents));
  const bool clean = std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c < 127; });
  // A line end in it would be a header of its own.
  if (token.empty() || !clean) return absl::UnauthenticatedError(absl::StrFormat("%s holds no token", path));
  return token;
}

absl::StatusOr<std::string> KubernetesApi::OwnNamespace() const {
  const std::string path = JoinPath(options_.credentials, "namespace");
  ATOLL_ASSIGN_OR_RETURN(const std::string contents, ReadFile(path, kLargestCredential));
  return std::string(absl::StripAsciiWhitespace(contents));
}

KubernetesApi::Attempt KubernetesApi::Try(const KubernetesCall& call) {
  MutexLock lock(&mutex_);
  if (call.overtaken && call.overtaken()) {
    return {.status = absl::CancelledError(
                absl::StrFormat("%s %s conflicted with another change", call.method, call.path))};
  }
  const auto token = ReadToken();
  if (!token.ok()) return {.status = token.status()};
  auto response = http_->Exchange({.method = call.method,
                                   .path = call.path,
                                   .content_type = call.content_type,
                                   .body = call.body,
                                   .bearer_token = *token});
  if (!response.ok()) {
    const bool passing =
        absl::IsUnavailable(response.status()) || absl::IsDeadlineExceeded(response.status());
    return {.status = response.status(), .repeat = passing};
  }
  const int code = response->status;
  if (code >= 200 && code < 300) return {.body = std::move(response->body)};
  const std::string said =
      absl::StrFormat("%s %s answered %d: %s", call.method, call.path, code, WordsOf(*response, *token));
  if (code == 401) {
    return {.status = absl::UnauthenticatedError(absl::StrFormat(
                "%s. The API server rejects the service account's token in %s: check that the account exists "
                "and that the token belongs to this cluster and has not expired",
                said, options_.credentials)),
            .repeat = true,
            .rejected_token = true};
  }
  if (code == 403) {
    return {.status = absl::PermissionDeniedError(
                absl::StrFormat("%s. Grant the coordinator's service account the verb '%s' on the resource "
                                "'%s' (apiGroup '%s') in the "
                                "namespace %s, with a Role and a RoleBinding",
                                said, call.verb, call.resource, call.api_group, call.name_space))};
  }
  if (code == 404) return {.status = absl::NotFoundError(said)};
  if (code == 409) return {.status = absl::AbortedError(said), .repeat = true};
  if (code == 429) {
    return {
        .status = absl::ResourceExhaustedError(said), .repeat = true, .retry_after = response->retry_after};
  }
  if (code >= 500) {
    return {.status = absl::UnavailableError(said), .repeat = true, .retry_after = response->retry_after};
  }
  return {.status = absl::InvalidArgumentError(said)};
}

Duration KubernetesApi::NextWait(Backoff& backoff, const Attempt& attempt) const {
  if (attempt.rejected_token) return Duration::zero();
  return attempt.retry_after ? backoff.NextAtLeast(*attempt.retry_after) : backoff.Next();
}

absl::StatusOr<std::string> KubernetesApi::Call(const KubernetesCall& call) {
  Backoff backoff(options_.backoff, options_.seed);
  bool token_was_rejected = false;
  for (int attempt = 1;; ++attempt) {
    Attempt result = Try(call);
    if (result.status.ok()) return std::move(result.body);
    if (!result.repeat || (result.rejected_token && token_was_rejected)) return result.status;
    token_was_rejected = token_was_rejected || result.rejected_token;
    const auto give_up = [&](const std::string& why) {
      return absl::Status(result.status.code(),
                          absl::StrCat(std::string(result.status.message()), "; ", why));
    };
    if (attempt >= options_.attempts) return give_up(absl::StrFormat("given up after %d attempts", attempt));
    if (result.retry_after && *result.retry_after > options_.longest_wait) {
      return give_up(
          absl::StrFormat("it asks to wait for %s; retry then", HumanDuration(*result.retry_after)));
    }
    const Duration wait = NextWait(backoff, result);
    if (wait > Duration::zero() && !sleeper_->SleepFor(wait)) {
      return absl::CancelledError("the launcher is shutting down");
    }
  }
}

}  // namespace atl
