#include "common/tls/certificate.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <ctime>

#include "absl/strings/str_format.h"
#include "common/status.h"
#include "common/tls/openssl_handles.h"

namespace atl {
namespace tls {

BioPtr MemoryBio(std::string_view text) {
  return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

std::vector<X509Ptr> ReadCertificates(std::string_view pem) {
  std::vector<X509Ptr> found;
  const BioPtr bio = MemoryBio(pem);
  while (bio) {
    X509Ptr one(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
    if (!one) break;
    found.push_back(std::move(one));
  }
  ERR_clear_error();  // the end of the text counts as one
  return found;
}

KeyPtr ReadKey(std::string_view pem) {
  const BioPtr bio = MemoryBio(pem);
  // Without this OpenSSL would ask for a pass phrase on the terminal.
  const auto no_phrase = [](char*, int, int, void*) { return 0; };
  KeyPtr key(bio ? PEM_read_bio_PrivateKey(bio.get(), nullptr, no_phrase, nullptr) : nullptr);
  ERR_clear_error();
  return key;
}

}  // namespace tls

namespace {

std::string NameText(const X509_NAME* name) {
  const tls::BioPtr bio(BIO_new(BIO_s_mem()));
  if (!bio || X509_NAME_print_ex(bio.get(), name, 0, XN_FLAG_ONELINE & ~ASN1_STRFLGS_ESC_MSB) < 0) return "";
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return std::string(data, static_cast<size_t>(size));
}

WallTime ToWallTime(const ASN1_TIME* time) {
  std::tm parts = {};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return WallTime();
  return WallTime(std::chrono::seconds(::timegm(&parts)));
}

std::string Text(const ASN1_STRING* string) {
  return std::string(reinterpret_cast<const char*>(ASN1_STRING_get0_data(string)),
                     static_cast<size_t>(ASN1_STRING_length(string)));
}

std::string AddressText(const ASN1_STRING* bytes) {
  const int family = ASN1_STRING_length(bytes) == 4 ? AF_INET : AF_INET6;
  if (family == AF_INET6 && ASN1_STRING_length(bytes) != 16) return "";
  char text[INET6_ADDRSTRLEN];
  const char* done = ::inet_ntop(family, ASN1_STRING_get0_data(bytes), text, sizeof(text));
  return done == nullptr ? "" : done;
}

void AddNames(const X509* certificate, CertificateSummary& facts) {
  auto* names = static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(const_cast<X509*>(certificate), NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; i < sk_GENERAL_NAME_num(names); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names, i);
    if (name->type == GEN_DNS) facts.dns_names.push_back(Text(name->d.dNSName));
    if (name->type == GEN_URI) facts.uris.push_back(Text(name->d.uniformResourceIdentifier));
    if (name->type == GEN_IPADD) facts.addresses.push_back(AddressText(name->d.iPAddress));
  }
  GENERAL_NAMES_free(names);
}

}  // namespace

absl::StatusOr<CertificateSummary> ReadCertificate(std::string_view pem) {
  const std::vector<tls::X509Ptr> found = tls::ReadCertificates(pem);
  if (found.empty()) {
    return absl::InvalidArgumentError("holds no certificate in PEM form (-----BEGIN CERTIFICATE-----)");
  }
  const X509* first = found.front().get();
  CertificateSummary facts;
  facts.subject = NameText(X509_get_subject_name(first));
  facts.issuer = NameText(X509_get_issuer_name(first));
  facts.not_before = ToWallTime(X509_get0_notBefore(first));
  facts.not_after = ToWallTime(X509_get0_notAfter(first));
  AddNames(first, facts);
  return facts;
}

absl::Status CheckKeyPair(std::string_view certificate_pem, std::string_view key_pem) {
  const std::vector<tls::X509Ptr> found = tls::ReadCertificates(certificate_pem);
  if (found.empty()) return absl::InvalidArgumentError("there is no certificate in PEM form");
  const tls::KeyPtr key = tls::ReadKey(key_pem);
  if (!key) {
    return absl::InvalidArgumentError(
        "holds no private key in PEM form that is readable without a pass phrase");
  }
  const bool pair = X509_check_private_key(found.front().get(), key.get()) == 1;
  ERR_clear_error();
  return pair ? absl::OkStatus() : absl::InvalidArgumentError("the key does not match the certificate");
}

absl::Status CheckUse(std::string_view certificate_pem, CertificateUse use) {
  const std::vector<tls::X509Ptr> found = tls::ReadCertificates(certificate_pem);
  if (found.empty()) return absl::InvalidArgumentError("there is no certificate in PEM form");
  const bool server = use == CertificateUse::kServer;
  // All bits are set where the certificate has no such extension. OpenSSL does not take anyExtendedKeyUsage
  // for one of the two either.
  const uint32_t allowed = X509_get_extended_key_usage(found.front().get());
  if ((allowed & (server ? XKU_SSL_SERVER | XKU_SGC : XKU_SSL_CLIENT)) != 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("the certificate of '%s' is not for a %s: its extendedKeyUsage lacks %s",
                      NameText(X509_get_subject_name(found.front().get())), server ? "server" : "client",
                      server ? "serverAuth" : "clientAuth"));
}

absl::StatusOr<int> CountCertificates(std::string_view pem) {
  const auto found = static_cast<int>(tls::ReadCertificates(pem).size());
  int begun = 0;
  constexpr std::string_view kBegin = "-----BEGIN CERTIFICATE-----";
  for (size_t at = pem.find(kBegin); at != std::string_view::npos; at = pem.find(kBegin, at + 1)) ++begun;
  if (found == 0) return absl::InvalidArgumentError("holds no certificate in PEM form");
  if (found < begun) {
    return absl::InvalidArgumentError(
        absl::StrFormat("certificate number %d in it is unreadable", found + 1));
  }
  return found;
}

absl::Status VerifyClient(std::string_view chain_pem, std::string_view roots_pem) {
  const std::vector<tls::X509Ptr> chain = tls::ReadCertificates(chain_pem);
  if (chain.empty()) return absl::PermissionDeniedError("there is no certificate");
  const tls::StorePtr store(X509_STORE_new());
  const tls::StoreContextPtr context(X509_STORE_CTX_new());
  if (!store || !context) return absl::InternalError("OpenSSL has no memory");
  for (const tls::X509Ptr& root : tls::ReadCertificates(roots_pem)) {
    X509_STORE_add_cert(store.get(), root.get());
  }
  STACK_OF(X509)* between = sk_X509_new_null();
  for (size_t i = 1; i < chain.size(); ++i) sk_X509_push(between, chain[i].get());
  bool good = X509_STORE_CTX_init(context.get(), store.get(), chain.front().get(), between) == 1;
  good = good && X509_STORE_CTX_set_purpose(context.get(), X509_PURPOSE_SSL_CLIENT) == 1;
  good = good && X509_verify_cert(context.get()) == 1;
  const int why = X509_STORE_CTX_get_error(context.get());
  sk_X509_free(between);
  ERR_clear_error();
  if (good) return absl::OkStatus();
  return absl::PermissionDeniedError(X509_verify_cert_error_string(why));
}

bool CoversHost(std::string_view certificate_pem, const std::string& host) {
  const std::vector<tls::X509Ptr> found = tls::ReadCertificates(certificate_pem);
  if (found.empty()) return false;
  X509* const first = found.front().get();
  return X509_check_host(first, host.data(), host.size(), 0, nullptr) == 1 ||
         X509_check_ip_asc(first, host.c_str(), 0) == 1;
}

std::string UtcMinute(WallTime time) {
  const std::time_t seconds =
      std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
  std::tm parts = {};
  ::gmtime_r(&seconds, &parts);
  char text[32];
  return std::string(text, std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M UTC", &parts));
}

}  // namespace atl
