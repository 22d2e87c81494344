#include "server/launch/http_client.h"

#include <curl/curl.h>

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/status.h"

namespace atl {
namespace {

constexpr size_t kLargestAnswer = size_t{16} << 20;

size_t KeepBody(char* bytes, size_t size, size_t count, void* response) {
  std::string& body = static_cast<HttpResponse*>(response)->body;
  const size_t n = size * count;
  if (body.size() + n > kLargestAnswer) return 0;  // ends the exchange: CURLE_WRITE_ERROR
  body.append(bytes, n);
  return n;
}

size_t KeepHeader(char* bytes, size_t size, size_t count, void* response) {
  const std::string line(bytes, size * count);
  const size_t colon = line.find(':');
  if (colon != std::string::npos && absl::AsciiStrToLower(line.substr(0, colon)) == "retry-after") {
    double seconds = 0;
    // A date is allowed too, but the API server gives seconds; what is not understood is left to the backoff.
    if (absl::SimpleAtod(line.substr(colon + 1), &seconds) && seconds >= 0 && seconds < 1e6) {
      static_cast<HttpResponse*>(response)->retry_after = Seconds(seconds);
    }
  }
  return size * count;
}

absl::Status FailureStatus(CURLcode code, const std::string& what, const char* detail) {
  const std::string message = absl::StrCat(what, ": ", *detail != '\0' ? detail : curl_easy_strerror(code));
  switch (code) {
    case CURLE_OPERATION_TIMEDOUT:
      return absl::DeadlineExceededError(message);
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
      return absl::UnauthenticatedError(message);
    case CURLE_WRITE_ERROR:
      return absl::ResourceExhaustedError(absl::StrCat(what, ": the answer is larger than 16 MiB"));
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
      return absl::InvalidArgumentError(message);
    default:
      return absl::UnavailableError(message);
  }
}

long Milliseconds(Duration duration) { return static_cast<long>(ToSeconds(duration) * 1000); }

}  // namespace

struct HttpClient::Handle {
  // Counted by libcurl; safe from any thread since 7.84.
  Handle() : global(curl_global_init(CURL_GLOBAL_DEFAULT)), curl(curl_easy_init()) {}
  ~Handle() {
    curl_easy_cleanup(curl);
    if (global == CURLE_OK) curl_global_cleanup();
  }
  const CURLcode global;
  CURL* const curl;
};

HttpClient::HttpClient(HttpClientOptions options, std::unique_ptr<Handle> handle)
    : options_(std::move(options)), handle_(std::move(handle)) {}

HttpClient::~HttpClient() = default;

absl::StatusOr<std::unique_ptr<HttpClient>> HttpClient::Create(HttpClientOptions options) {
  auto handle = std::make_unique<Handle>();
  if (handle->global != CURLE_OK || handle->curl == nullptr) {
    return absl::InternalError("libcurl cannot be initialised");
  }
  return std::unique_ptr<HttpClient>(new HttpClient(std::move(options), std::move(handle)));
}

absl::StatusOr<HttpResponse> HttpClient::Exchange(const HttpRequest& request) {
  MutexLock lock(&mutex_);
  CURL* const curl = handle_->curl;
  curl_easy_reset(curl);  // keeps the connection
  const std::string url = options_.base_url + request.path;
  const std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)> headers(
      [&] {
        curl_slist* list = curl_slist_append(nullptr, "Accept: application/json");
        list = curl_slist_append(list, absl::StrCat("Authorization: Bearer ", request.bearer_token).c_str());
        if (!request.body.empty()) {
          list = curl_slist_append(list, absl::StrCat("Content-Type: ", request.content_type).c_str());
        }
        return list;
      }(),
      &curl_slist_free_all);
  HttpResponse response;
  char detail[CURL_ERROR_SIZE] = "";
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, detail);
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
  if (!request.body.empty()) {
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, static_cast<long>(request.body.size()));
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request.body.c_str());
  }
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "https");
  curl_easy_setopt(curl, CURLOPT_PROXY, "");
  curl_easy_setopt(curl, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  curl_easy_setopt(curl, CURLOPT_CAINFO, options_.ca_file.c_str());
  curl_easy_setopt(curl, CURLOPT_CAPATH, nullptr);  // not the system's authorities
  curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 1L);
  curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 2L);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, Milliseconds(options_.connect_timeout));
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, Milliseconds(options_.timeout));
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &KeepBody);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &response);
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, &KeepHeader);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &response);
  const CURLcode code = curl_easy_perform(curl);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, nullptr);  // it goes out of scope before the handle does
  if (code != CURLE_OK) return FailureStatus(code, absl::StrFormat("%s %s", request.method, url), detail);
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  response.status = static_cast<int>(status);
  return response;
}

std::string PercentEncoded(const std::string& text) {
  std::string encoded;
  for (const char c : text) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.' || c == '~') {
      encoded += c;
    } else {
      absl::StrAppendFormat(&encoded, "%%%02X", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

}  // namespace atl
