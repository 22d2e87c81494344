#include "common/http/http_daemon.h"

#include <fcntl.h>
#include <microhttpd.h>
#include <netdb.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace atl {

struct HttpDaemon::State {
  HttpLimits limits;
  Parts parts;
  MHD_Daemon* daemon = nullptr;
  bool listening = true;
  std::atomic<size_t> working{0};
};

namespace {

/// One request, from its head until the client has received the answer or is gone.
struct Exchange {
  WebRequest request;
  bool too_large = false;
  bool answered = false;  // `reply` is there
  WebReply reply;
};

int SocketOf(MHD_Connection* connection) {
  const MHD_ConnectionInfo* info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  return info == nullptr ? -1 : info->connect_fd;
}

struct Peer {
  std::string host;  // empty: not known
  std::string port;
  bool ipv6 = false;
};

Peer AddressOf(MHD_Connection* connection) {
  const MHD_ConnectionInfo* info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
  if (info == nullptr || info->client_addr == nullptr) return {};
  char host[NI_MAXHOST] = "";
  char port[NI_MAXSERV] = "";
  const bool ipv6 = info->client_addr->sa_family == AF_INET6;
  if (::getnameinfo(info->client_addr, ipv6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in), host, sizeof(host),
                    port, sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return {};
  }
  return {.host = host, .port = port, .ipv6 = ipv6};
}

std::string HostOf(MHD_Connection* connection) { return AddressOf(connection).host; }

std::string PeerOf(MHD_Connection* connection) {
  const Peer peer = AddressOf(connection);
  if (peer.host.empty()) return "";
  return peer.ipv6 ? absl::StrCat("[", peer.host, "]:", peer.port) : absl::StrCat(peer.host, ":", peer.port);
}

const char* HeaderOf(MHD_Connection* connection, const char* name) {
  return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

std::string HeaderText(MHD_Connection* connection, const char* name) {
  const char* value = HeaderOf(connection, name);
  return value == nullptr ? "" : value;
}

MHD_Result AddParameter(void* query, MHD_ValueKind, const char* name, const char* value) {
  (*static_cast<std::map<std::string, std::string>*>(query))[name] = value == nullptr ? "" : value;
  return MHD_YES;
}

WebRequest HeadOf(MHD_Connection* connection, const char* path, const char* method) {
  WebRequest request;
  request.method = method;
  request.path = path;
  MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, &AddParameter, &request.query);
  request.host = HeaderText(connection, "Host");
  if (const char* origin = HeaderOf(connection, "Origin"); origin != nullptr) request.origin = origin;
  request.fetch_site = HeaderText(connection, "Sec-Fetch-Site");
  request.authorization = HeaderText(connection, "Authorization");
  request.content_type = HeaderText(connection, "Content-Type");
  request.action = HeaderText(connection, kActionHeader);
  request.if_none_match = HeaderText(connection, "If-None-Match");
  request.peer = PeerOf(connection);
  return request;
}

MHD_Result Send(MHD_Connection* connection, const WebReply& reply) {
  MHD_Response* response = MHD_create_response_from_buffer(
      reply.body.size(), const_cast<char*>(reply.body.data()), MHD_RESPMEM_MUST_COPY);
  if (response == nullptr) return MHD_NO;
  MHD_add_response_header(response, "Content-Type", reply.content_type.c_str());
  for (const auto& [name, value] : SecurityHeaders()) {
    MHD_add_response_header(response, name.c_str(), value.c_str());
  }
  for (const auto& [name, value] : reply.headers) {
    MHD_add_response_header(response, name.c_str(), value.c_str());
  }
  if (!reply.etag.empty()) {
    MHD_add_response_header(response, "ETag", absl::StrCat("\"", reply.etag, "\"").c_str());
  }
  const MHD_Result queued = MHD_queue_response(connection, static_cast<unsigned>(reply.status), response);
  MHD_destroy_response(response);
  return queued;
}

/// An error that the daemon finds itself.
WebReply OwnError(const HttpDaemon::State& state, int http_status, const char* code,
                  const std::string& message) {
  WebReply reply = ErrorReply(http_status, code, message);
  if (state.parts.error_body) reply.body = state.parts.error_body(http_status, message);
  return reply;
}

WebReply TooLarge(const HttpDaemon::State& state) {
  WebReply reply = OwnError(state, 413, "INVALID_ARGUMENT",
                            absl::StrFormat("a body has at most %d bytes", state.limits.body_bytes));
  reply.headers.emplace_back("Connection", "close");
  return reply;
}

/// A client that is still sending when the connection closes gets a reset, and may lose the reply with it. So
/// bodies up to this many times the limit are read and dropped.
constexpr uint64_t kDroppedBodies = 16;

uint64_t AnnouncedBytes(MHD_Connection* connection) {
  const std::string length = HeaderText(connection, "Content-Length");
  uint64_t bytes = 0;
  return absl::SimpleAtoi(length, &bytes) ? bytes : 0;
}

/// Whether to reply before a byte of the body is taken.
bool RejectsAtOnce(MHD_Connection* connection, uint64_t announced, const HttpLimits& limits) {
  const bool client_waits = HeaderOf(connection, "Expect") != nullptr;
  return announced > limits.body_bytes * (client_waits ? 1 : kDroppedBodies);
}

/// Whether nothing more can come from the client. The socket stays open while its connection is suspended.
bool IsGone(int socket) {
  char next = 0;
  ssize_t got = 0;
  do {
    got = ::recv(socket, &next, 1, MSG_PEEK | MSG_DONTWAIT);
  } while (got < 0 && errno == EINTR);
  return got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK);
}

/// Answers in the pool. Meanwhile the connection is suspended, and its thread serves others.
MHD_Result HandOver(HttpDaemon::State& state, MHD_Connection* connection, Exchange& exchange) {
  const int socket = SocketOf(connection);
  state.parts.connections->Working(socket);
  ++state.working;
  MHD_suspend_connection(connection);
  const bool posted = state.parts.post([&state, connection, &exchange, socket] {
    // What it is told, nobody reads.
    exchange.reply = state.limits.skip_gone_clients && IsGone(socket)
                         ? OwnError(state, 503, "UNAVAILABLE", "the client closed the connection")
                         : state.parts.answer(exchange.request);
    exchange.answered = true;
    state.parts.connections->Waiting(socket);
    MHD_resume_connection(connection);
    --state.working;
  });
  if (posted) return MHD_YES;
  exchange.reply = OwnError(state, 503, "UNAVAILABLE", "too many requests are waiting; retry in a moment");
  exchange.reply.headers.emplace_back("Retry-After", "2");
  exchange.answered = true;
  state.parts.connections->Waiting(socket);
  MHD_resume_connection(connection);
  --state.working;
  return MHD_YES;
}

MHD_Result OnRequest(void* context, MHD_Connection* connection, const char* url, const char* method,
                     const char*, const char* upload, size_t* upload_size, void** per_request) {
  auto& state = *static_cast<HttpDaemon::State*>(context);
  if (*per_request == nullptr) {
    auto begun = std::make_unique<Exchange>();
    begun->request = HeadOf(connection, url, method);
    const uint64_t announced = AnnouncedBytes(connection);
    begun->too_large = announced > state.limits.body_bytes;
    *per_request = begun.release();
    return RejectsAtOnce(connection, announced, state.limits) ? Send(connection, TooLarge(state)) : MHD_YES;
  }
  Exchange& exchange = *static_cast<Exchange*>(*per_request);
  if (exchange.answered) return Send(connection, exchange.reply);
  if (*upload_size > 0) {
    const size_t room = state.limits.body_bytes - exchange.request.body.size();
    if (*upload_size > room) exchange.too_large = true;
    if (!exchange.too_large) exchange.request.body.append(upload, *upload_size);
    *upload_size = 0;
    return MHD_YES;
  }
  if (exchange.too_large) return Send(connection, TooLarge(state));
  if (state.parts.is_quick(exchange.request)) return Send(connection, state.parts.answer(exchange.request));
  return HandOver(state, connection, exchange);
}

void OnCompleted(void* context, MHD_Connection* connection, void** per_request, MHD_RequestTerminationCode) {
  delete static_cast<Exchange*>(*per_request);
  *per_request = nullptr;
  static_cast<HttpDaemon::State*>(context)->parts.connections->Waiting(SocketOf(connection));
}

void OnConnection(void* context, MHD_Connection* connection, void**, MHD_ConnectionNotificationCode what) {
  const auto& state = *static_cast<HttpDaemon::State*>(context);
  ConnectionTable& table = *state.parts.connections;
  if (what == MHD_CONNECTION_NOTIFY_STARTED) {
    if (state.limits.crowded > 0 && table.size() >= state.limits.crowded) table.EndLongestWaiting();
    table.Opened(SocketOf(connection), HostOf(connection));
  }
  if (what == MHD_CONNECTION_NOTIFY_CLOSED) table.Closed(SocketOf(connection));
}

/// Paths are compared as sent, because no served path needs escaping.
size_t KeepEscaped(void*, MHD_Connection*, char* text) { return std::strlen(text); }

MHD_OptionItem Number(MHD_OPTION option, size_t value) {
  return {option, static_cast<intptr_t>(value), nullptr};
}

MHD_OptionItem Text(MHD_OPTION option, const std::string& value) {
  return {option, 0, const_cast<char*>(value.c_str())};
}

std::vector<MHD_OptionItem> TlsOptions(const WebTls& tls) {
  static const std::string& versions = *new std::string("NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2");
  return {Text(MHD_OPTION_HTTPS_MEM_CERT, tls.certificate), Text(MHD_OPTION_HTTPS_MEM_KEY, tls.key),
          Text(MHD_OPTION_HTTPS_PRIORITIES, versions)};
}

}  // namespace

absl::StatusOr<std::unique_ptr<HttpDaemon>> HttpDaemon::Start(const FileDescriptor& listener,
                                                              const std::optional<WebTls>& tls,
                                                              const HttpLimits& limits, Parts parts) {
  auto state = std::make_unique<State>();
  state->limits = limits;
  state->parts = std::move(parts);
  const auto idle_seconds = std::chrono::duration_cast<std::chrono::seconds>(limits.idle).count();
  std::vector<MHD_OptionItem> options = {
      Number(MHD_OPTION_CONNECTION_LIMIT, limits.connections),
      Number(MHD_OPTION_PER_IP_CONNECTION_LIMIT, limits.connections_per_address),
      Number(MHD_OPTION_CONNECTION_MEMORY_LIMIT, limits.connection_bytes),
      Number(MHD_OPTION_CONNECTION_TIMEOUT, static_cast<size_t>(idle_seconds))};
  unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME;
  if (tls) {
    flags |= MHD_USE_TLS;
    for (const MHD_OptionItem& option : TlsOptions(*tls)) options.push_back(option);
  }
  options.push_back({MHD_OPTION_END, 0, nullptr});
  FileDescriptor own(::fcntl(listener.get(), F_DUPFD_CLOEXEC, 0));
  State* context = state.get();
  state->daemon = MHD_start_daemon(flags, 0, nullptr, nullptr, &OnRequest, context,       //
                                   MHD_OPTION_LISTEN_SOCKET, own.get(),                   //
                                   MHD_OPTION_UNESCAPE_CALLBACK, &KeepEscaped, nullptr,   //
                                   MHD_OPTION_NOTIFY_COMPLETED, &OnCompleted, context,    //
                                   MHD_OPTION_NOTIFY_CONNECTION, &OnConnection, context,  //
                                   MHD_OPTION_ARRAY, options.data(), MHD_OPTION_END);
  if (state->daemon == nullptr) {
    if (tls) return absl::InvalidArgumentError("the certificate and the key are invalid or do not match");
    return absl::InternalError("the web server did not start");
  }
  own.Release();  // the daemon closes it
  return std::unique_ptr<HttpDaemon>(new HttpDaemon(std::move(state)));
}

HttpDaemon::HttpDaemon(std::unique_ptr<State> state) : state_(std::move(state)) {}

HttpDaemon::~HttpDaemon() {
  StopListening();
  MHD_stop_daemon(state_->daemon);
}

void HttpDaemon::StopListening() {
  if (!std::exchange(state_->listening, false)) return;
  const FileDescriptor listener(MHD_quiesce_daemon(state_->daemon));
}

size_t HttpDaemon::working() const { return state_->working; }

}  // namespace atl
