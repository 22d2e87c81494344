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

/// An Ed25519 key (RFC 8032, over OpenSSL): who has it can sign, who has its public half can check.
/// Immutable; thread-safe.
class SigningKey {
 public:
  /// A new one, from the system's generator.
  static SigningKey Generate();
  /// The key that was kept as `seed`. InvalidArgument when it has not kSigningSeedBytes.
  static absl::StatusOr<SigningKey> FromSeed(std::string_view seed);

  /// What to keep, in secret: RFC 8032's private key.
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

/// Whether `signature` is that of `message` by the owner of `public_key`. False for any of them in a wrong
/// size or form.
bool VerifySignature(std::string_view public_key, std::string_view message, std::string_view signature);

}  // namespace atl

#endif  // ATOLL_COMMON_SIGNATURE_H_
