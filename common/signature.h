#ifndef ATOLL_COMMON_SIGNATURE_H_
#define ATOLL_COMMON_SIGNATURE_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace atl {

inline constexpr size_t kSigningSeedBytes = 32;
inline constexpr size_t kPublicKeyBytes = 32;
inline constexpr size_t kSignatureBytes = 64;

/// An Ed25519 key for signing (RFC 8032, with OpenSSL). The public key is enough to verify. Immutable;
/// thread-safe.
class SigningKey {
 public:
  /// Creates a key with the system's generator.
  static SigningKey Generate();
  /// Restores the key from `seed`. InvalidArgument if the seed does not have kSigningSeedBytes bytes.
  static absl::StatusOr<SigningKey> FromSeed(std::string_view seed);

  /// The secret to store: RFC 8032's private key.
  const std::string& seed() const { return seed_; }
  const std::string& public_key() const { return public_key_; }

  /// kSignatureBytes; equal for equal messages.
  std::string Sign(std::string_view message) const;

 private:
  SigningKey(std::string seed, std::string public_key)
      : seed_(std::move(seed)), public_key_(std::move(public_key)) {}

  std::string seed_;
  std::string public_key_;
};

/// Whether `signature` is the signature of `message` with the key of `public_key`. False if any argument has
/// a wrong size or form.
bool VerifySignature(std::string_view public_key, std::string_view message, std::string_view signature);

}  // namespace atl

#endif  // ATOLL_COMMON_SIGNATURE_H_
