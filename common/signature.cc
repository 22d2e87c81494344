#include "common/signature.h"

#include <openssl/evp.h>

#include <cstdlib>
#include <memory>

#include "absl/strings/str_format.h"
#include "common/digest.h"

namespace atl {
namespace {

using KeyPtr = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using ContextPtr = std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)>;

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}
unsigned char* Bytes(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }

KeyPtr PrivateKey(std::string_view seed) {
  return {EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, Bytes(seed), seed.size()), &EVP_PKEY_free};
}

/// OpenSSL rejects a well-formed key only without memory or without Ed25519, which no caller could handle.
[[noreturn]] void Broken() { std::abort(); }

}  // namespace

SigningKey SigningKey::Generate() { return *FromSeed(RandomBytes(kSigningSeedBytes)); }

absl::StatusOr<SigningKey> SigningKey::FromSeed(std::string_view seed) {
  if (seed.size() != kSigningSeedBytes) {
    return absl::InvalidArgumentError(
        absl::StrFormat("a signing key has %d bytes, not %d", kSigningSeedBytes, seed.size()));
  }
  const KeyPtr key = PrivateKey(seed);
  std::string public_key(kPublicKeyBytes, '\0');
  size_t size = public_key.size();
  if (key == nullptr || EVP_PKEY_get_raw_public_key(key.get(), Bytes(public_key), &size) != 1) Broken();
  return SigningKey(std::string(seed), std::move(public_key));
}

std::string SigningKey::Sign(std::string_view message) const {
  const KeyPtr key = PrivateKey(seed_);
  const ContextPtr context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  std::string signature(kSignatureBytes, '\0');
  size_t size = signature.size();
  const bool made =
      key != nullptr && context != nullptr &&
      EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
      EVP_DigestSign(context.get(), Bytes(signature), &size, Bytes(message), message.size()) == 1;
  if (!made || size != kSignatureBytes) Broken();
  return signature;
}

bool VerifySignature(std::string_view public_key, std::string_view message, std::string_view signature) {
  if (public_key.size() != kPublicKeyBytes || signature.size() != kSignatureBytes) return false;
  const KeyPtr key(
      EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, Bytes(public_key), public_key.size()),
      &EVP_PKEY_free);
  const ContextPtr context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  return key != nullptr && context != nullptr &&
         EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
         EVP_DigestVerify(context.get(), Bytes(signature), signature.size(), Bytes(message),
                          message.size()) == 1;
}

}  // namespace atl
