#include "common/tls/probe.h"

#include <netdb.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/file_descriptor.h"
#include "common/tls/certificate.h"
#include "common/tls/openssl_handles.h"

namespace atl {
namespace {

// The start of an HTTP/2 client: the preface and an empty SETTINGS frame.
constexpr std::string_view kGreeting("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 33);
constexpr unsigned char kHttp2Protocol[] = {2, 'h', '2'};

struct AddrInfoDeleter {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};

timeval ToTimeval(Duration duration) {
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(duration).count();
  return {.tv_sec = static_cast<time_t>(micros / 1'000'000),
          .tv_usec = static_cast<suseconds_t>(micros % 1'000'000)};
}

/// A connected socket, or an invalid one. `unknown_name`: the name service does not know the host.
FileDescriptor Connect(const ProbeOptions& options, bool* unknown_name) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failed =
      ::getaddrinfo(options.host.c_str(), std::to_string(options.port).c_str(), &hints, &found);
  *unknown_name = failed == EAI_NONAME || failed == EAI_NODATA;
  if (failed != 0) return {};
  const std::unique_ptr<addrinfo, AddrInfoDeleter> list(found);
  const timeval timeout = ToTimeval(options.timeout);
  for (const addrinfo* entry = list.get(); entry != nullptr; entry = entry->ai_next) {
    FileDescriptor fd(::socket(entry->ai_family, entry->ai_socktype | SOCK_CLOEXEC, entry->ai_protocol));
    if (!fd.valid()) continue;
    // The send timeout also limits connecting.
    ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
    ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
    if (::connect(fd.get(), entry->ai_addr, entry->ai_addrlen) == 0) return fd;
  }
  return {};
}

bool IsAlert(unsigned long error) {
  return ERR_GET_LIB(error) == ERR_LIB_SSL && ERR_GET_REASON(error) >= SSL_AD_REASON_OFFSET;
}

/// Blocks SIGPIPE on this thread while it lives, and discards one that arrived, because OpenSSL may write to
/// closed sockets.
class NoBrokenPipe {
 public:
  NoBrokenPipe() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoBrokenPipe() {
    const timespec at_once = {};
    while (sigismember(&before_, SIGPIPE) == 0 && ::sigtimedwait(&pipe_, nullptr, &at_once) > 0) {
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoBrokenPipe(const NoBrokenPipe&) = delete;
  NoBrokenPipe& operator=(const NoBrokenPipe&) = delete;

 private:
  sigset_t pipe_;
  sigset_t before_;
};

/// One attempt at a handshake; the certificate is examined afterwards.
class Handshake {
 public:
  explicit Handshake(const ProbeOptions& options)
      : options_(options),
        socket_(Connect(options, &unknown_name_)),
        context_(SSL_CTX_new(TLS_client_method())) {
    if (!socket_.valid() || !context_) return;
    SSL_CTX_set_verify(context_.get(), SSL_VERIFY_NONE, nullptr);
    UseRoots();
    UseOwn();
    SSL_CTX_set_cert_cb(context_.get(), &NoteAsked, this);
    ssl_.reset(SSL_new(context_.get()));
    SSL_set_fd(ssl_.get(), socket_.get());
    SSL_set_alpn_protos(ssl_.get(), kHttp2Protocol, sizeof(kHttp2Protocol));
    if (options.host.find_first_not_of("0123456789.:") != std::string::npos) {
      SSL_set_tlsext_host_name(ssl_.get(), WantedName().c_str());
    }
    ERR_clear_error();
    const int result = SSL_connect(ssl_.get());
    done_ = result == 1;
    silent_ = IsSilence(result);
    error_ = ERR_peek_last_error();
    ERR_clear_error();
  }

  bool unknown_name() const { return unknown_name_; }
  bool connected() const { return ssl_ != nullptr; }
  /// Nothing arrived before the timeout.
  bool silent() const { return silent_; }
  /// Something arrived that was not TLS.
  bool other_protocol() const {
    return ERR_GET_LIB(error_) == ERR_LIB_SSL && ERR_GET_REASON(error_) != SSL_R_UNEXPECTED_EOF_WHILE_READING;
  }
  bool done() const { return done_; }
  /// The other side asked for our certificate.
  bool asked() const { return asked_; }
  unsigned long error() const { return error_; }
  const std::string& WantedName() const {
    return options_.server_name.empty() ? options_.host : options_.server_name;
  }
  long verdict() const { return SSL_get_verify_result(ssl_.get()); }

  std::string PeerPem() const {
    const tls::X509Ptr peer(SSL_get1_peer_certificate(ssl_.get()));
    const tls::BioPtr bio(BIO_new(BIO_s_mem()));
    if (!peer || !bio || PEM_write_bio_X509(bio.get(), peer.get()) != 1) return "";
    char* data = nullptr;
    const long size = BIO_get_mem_data(bio.get(), &data);
    return std::string(data, static_cast<size_t>(size));
  }

  /// Whether the other side continues after it has seen our certificate. With TLS 1.3 it rejects only then.
  bool GoesOn() {
    if (SSL_write(ssl_.get(), kGreeting.data(), static_cast<int>(kGreeting.size())) <= 0) return false;
    char answer[64];
    const int read = SSL_read(ssl_.get(), answer, sizeof(answer));
    const bool silent = IsSilence(read);
    error_ = ERR_peek_last_error();
    ERR_clear_error();
    return read > 0 || silent;  // silence is not a rejection
  }

 private:
  /// OpenSSL's callback when the other side asks for a certificate. The one that was set, if any, is sent.
  static int NoteAsked(SSL* /*ssl*/, void* handshake) {
    static_cast<Handshake*>(handshake)->asked_ = true;
    return 1;
  }
  bool IsSilence(int result) const {
    if (result > 0) return false;
    const int why = SSL_get_error(ssl_.get(), result);
    return why == SSL_ERROR_WANT_READ || (why == SSL_ERROR_SYSCALL && errno == EAGAIN);
  }
  void UseRoots() {
    if (options_.roots.empty()) {
      SSL_CTX_set_default_verify_paths(context_.get());
      return;
    }
    X509_STORE* const store = SSL_CTX_get_cert_store(context_.get());
    for (const tls::X509Ptr& root : tls::ReadCertificates(options_.roots)) {
      X509_STORE_add_cert(store, root.get());
    }
  }
  void UseOwn() {
    const std::vector<tls::X509Ptr> chain = tls::ReadCertificates(options_.certificate);
    const tls::KeyPtr key = tls::ReadKey(options_.key);
    if (chain.empty() || !key) return;
    SSL_CTX_use_certificate(context_.get(), chain.front().get());
    SSL_CTX_use_PrivateKey(context_.get(), key.get());
    for (size_t i = 1; i < chain.size(); ++i) SSL_CTX_add1_chain_cert(context_.get(), chain[i].get());
  }

  const ProbeOptions& options_;
  bool unknown_name_ = false;  // before the socket, which sets it
  const FileDescriptor socket_;
  const tls::SslContextPtr context_;
  tls::SslPtr ssl_;
  bool done_ = false;
  bool silent_ = false;
  bool asked_ = false;
  unsigned long error_ = 0;
};

std::string NamesOf(const CertificateSummary& facts) {
  std::vector<std::string> names = facts.dns_names;
  names.insert(names.end(), facts.addresses.begin(), facts.addresses.end());
  names.insert(names.end(), facts.uris.begin(), facts.uris.end());
  return names.empty() ? "nobody" : absl::StrJoin(names, ", ");
}

ProbeFinding OfName(const ProbeOptions& options) {
  return {
      .text = absl::StrFormat(
          "the host name '%s' is unknown: check the address and this machine's name service", options.host),
      .looks_permanent = true};
}

/// The answer to a greeting in plain text; HTTP/2 begins with a SETTINGS frame.
ProbeFinding OfPlainAnswer(const ProbeOptions& options) {
  constexpr char kSettings = 4;
  bool unknown_name = false;
  const FileDescriptor socket = Connect(options, &unknown_name);
  if (!socket.valid()) return {};
  if (::send(socket.get(), kGreeting.data(), kGreeting.size(), MSG_NOSIGNAL) < 0) return {};
  char answer[64];
  const ssize_t size = ::recv(socket.get(), answer, sizeof(answer), 0);
  if (size < 4 || answer[3] == kSettings) return {};
  return {.text = absl::StrFormat(
              "this port does not speak the protocol of a coordinator's %s port; it may be the port of "
              "--metrics-listen or --web-listen, or of another program: check the address",
              options.wanted == CoordinatorPort::kData ? "data" : "admin"),
          .looks_permanent = true};
}

ProbeFinding OfPlainClient(const ProbeOptions& options) {
  {
    const Handshake attempt(options);
    if (attempt.unknown_name()) return OfName(options);
    if (!attempt.connected()) return {};
    if (attempt.done() || IsAlert(attempt.error())) {
      return {.text =
                  "this port needs TLS, but this program connects in plain text: give --tls-ca FILE, the CA "
                  "that signed the coordinator's certificate",
              .looks_permanent = true};
    }
  }
  return OfPlainAnswer(options);
}

std::string OfCoordinatorsCertificate(const Handshake& attempt) {
  const std::string pem = attempt.PeerPem();
  const auto facts = ReadCertificate(pem);
  if (!facts.ok()) return "";
  const long verdict = attempt.verdict();
  if (verdict == X509_V_ERR_CERT_HAS_EXPIRED) {
    return absl::StrFormat(
        "the coordinator's certificate expired on %s: its operator must replace the files of --tls-cert and "
        "--tls-key (they are reloaded without a restart); if that date is in the future, this machine's "
        "clock is wrong",
        UtcMinute(facts->not_after));
  }
  if (verdict == X509_V_ERR_CERT_NOT_YET_VALID) {
    return absl::StrFormat(
        "the coordinator's certificate is not valid before %s; is this machine's clock "
        "right?",
        UtcMinute(facts->not_before));
  }
  if (verdict == X509_V_ERR_INVALID_PURPOSE) {
    const absl::Status use = CheckUse(pem, CertificateUse::kServer);
    return absl::StrFormat(
        "--tls-ca trusts the coordinator's certificate, but %s: its operator must start it with a "
        "coordinator's certificate in --tls-cert and --tls-key (scripts/dev-certs.sh FOLDER --coordinator "
        "creates one)",
        use.ok() ? absl::StrFormat("'%s' is not for a server", facts->subject) : std::string(use.message()));
  }
  if (verdict != X509_V_OK) {
    return absl::StrFormat(
        "the coordinator's certificate is signed by '%s', which --tls-ca does not trust (%s): give the CA "
        "file of this coordinator, or check the address",
        facts->issuer, X509_verify_cert_error_string(verdict));
  }
  if (!CoversHost(pem, attempt.WantedName())) {
    return absl::StrFormat(
        "the coordinator's certificate is for %s, not for %s: connect to one of these names, or give the "
        "expected name with --tls-server-name",
        NamesOf(*facts), attempt.WantedName());
  }
  return "";
}

std::string OfOwnCertificate(const ProbeOptions& options, unsigned long error) {
  const std::string why = IsAlert(error) ? absl::StrFormat(" (%s)", ERR_reason_error_string(error)) : "";
  const auto facts = ReadCertificate(options.certificate);
  if (!facts.ok()) {
    return absl::StrFormat(
        "the coordinator closed the connection%s because it requires a certificate: give --tls-cert and "
        "--tls-key, signed by the CA that it trusts. A token is enough only if the coordinator runs with "
        "--tls-client-auth optional",
        why);
  }
  const std::string file =
      options.certificate_file.empty() ? "" : absl::StrFormat(" (--tls-cert %s)", options.certificate_file);
  if (std::chrono::system_clock::now() >= facts->not_after) {
    return absl::StrFormat(
        "our certificate%s expired on %s, so the coordinator rejects it%s; replace the files of --tls-cert "
        "and "
        "--tls-key",
        file, UtcMinute(facts->not_after), why);
  }
  return absl::StrFormat(
      "the coordinator rejects our certificate%s%s: it belongs to %s, is signed by '%s', and is valid until "
      "%s; it must be signed by a CA in the coordinator's --tls-ca and allow clients",
      file, why, NamesOf(*facts), facts->issuer, UtcMinute(facts->not_after));
}

}  // namespace

ProbeFinding Probe(const ProbeOptions& options) {
  const NoBrokenPipe guard;
  if (!options.tls) return OfPlainClient(options);
  Handshake attempt(options);
  if (attempt.unknown_name()) return OfName(options);
  if (!attempt.connected() || attempt.silent()) return {};
  if (!attempt.done() && attempt.PeerPem().empty()) {
    if (IsAlert(attempt.error())) {
      return {.text = OfOwnCertificate(options, attempt.error()), .looks_permanent = true};
    }
    return {.text =
                "this port does not use TLS, but this program does: either the coordinator runs without "
                "--tls-cert, or this is the port of another program; without --tls-ca, --tls-cert and --tls "
                "this program uses plain text",
            .looks_permanent = attempt.other_protocol()};
  }
  const std::string theirs = OfCoordinatorsCertificate(attempt);
  if (!theirs.empty()) {
    // A certificate that is not valid yet becomes valid later.
    return {.text = theirs, .looks_permanent = attempt.verdict() != X509_V_ERR_CERT_NOT_YET_VALID};
  }
  if (attempt.done() && attempt.GoesOn()) return {};
  // gRPC's server sends no alert: with TLS 1.3 our handshake ends well, and then the connection is closed
  // without a byte. A coordinator that just stops does the same, but not for a minute: soon nobody listens.
  return {.text = OfOwnCertificate(options, attempt.error()),
          .looks_permanent = IsAlert(attempt.error()) || attempt.asked()};
}

std::string WhyNoConnection(const ProbeOptions& options) { return Probe(options).text; }

}  // namespace atl
