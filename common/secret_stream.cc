#include "common/secret_stream.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace atl {
namespace {

// The cipher counts blocks of 64 bytes in 32 bits of its first 16 bytes of nonce: 256 GiB before it would
// repeat itself. The object changes the key long before.
constexpr uint64_t kBytesPerKey = uint64_t{1} << 36;
constexpr size_t kMostAtOnce = size_t{1} << 20;

void Require(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "atoll: OpenSSL failed in %s\n", what);
  std::abort();
}

}  // namespace

struct SecretStream::State {
  EVP_CIPHER_CTX* context = EVP_CIPHER_CTX_new();
  uint64_t left = 0;

  ~State() { EVP_CIPHER_CTX_free(context); }  // wipes the key

  void NewKey() {
    std::array<unsigned char, 32> key;
    const std::array<unsigned char, 16> nonce{};  // the key is used once
    Require(RAND_priv_bytes(key.data(), static_cast<int>(key.size())) == 1, "RAND_priv_bytes");
    Require(context != nullptr &&
                EVP_EncryptInit_ex(context, EVP_chacha20(), nullptr, key.data(), nonce.data()) == 1,
            "EVP_EncryptInit_ex");
    OPENSSL_cleanse(key.data(), key.size());
    left = kBytesPerKey;
  }
};

SecretStream::SecretStream() : state_(std::make_unique<State>()) {}
SecretStream::~SecretStream() = default;

void SecretStream::Fill(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const std::span<std::byte> part = bytes.first(std::min(bytes.size(), kMostAtOnce));
    if (state_->left < part.size()) state_->NewKey();
    std::ranges::fill(part, std::byte{0});
    auto* const at = reinterpret_cast<unsigned char*>(part.data());
    int made = 0;
    Require(EVP_EncryptUpdate(state_->context, at, &made, at, static_cast<int>(part.size())) == 1 &&
                static_cast<size_t>(made) == part.size(),
            "EVP_EncryptUpdate");
    state_->left -= part.size();
    bytes = bytes.subspan(part.size());
  }
}

}  // namespace atl
