#ifndef ATOLL_COMMON_TLS_OPENSSL_HANDLES_H_
#define ATOLL_COMMON_TLS_OPENSSL_HANDLES_H_

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

// Owning handles of OpenSSL's objects; only for common/tls.

namespace atl::tls {

template <auto kFree>
struct Freer {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};

using BioPtr = std::unique_ptr<BIO, Freer<BIO_free_all>>;
using X509Ptr = std::unique_ptr<X509, Freer<X509_free>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;
using StorePtr = std::unique_ptr<X509_STORE, Freer<X509_STORE_free>>;
using StoreContextPtr = std::unique_ptr<X509_STORE_CTX, Freer<X509_STORE_CTX_free>>;
using SslContextPtr = std::unique_ptr<SSL_CTX, Freer<SSL_CTX_free>>;
using SslPtr = std::unique_ptr<SSL, Freer<SSL_free>>;

/// Reads from `text`, which outlives it.
BioPtr MemoryBio(std::string_view text);
/// All certificates in the text, in order, up to the first unreadable one. Clears OpenSSL's error queue.
std::vector<X509Ptr> ReadCertificates(std::string_view pem);
/// Null if the text is not a key or needs a pass phrase.
KeyPtr ReadKey(std::string_view pem);

}  // namespace atl::tls

#endif  // ATOLL_COMMON_TLS_OPENSSL_HANDLES_H_
