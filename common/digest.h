#ifndef ATOLL_COMMON_DIGEST_H_
#define ATOLL_COMMON_DIGEST_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace atl {

/// SHA-256 in pieces (OpenSSL). Not thread-safe. Movable.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void Update(std::string_view bytes);
  void Update(std::span<const std::byte> bytes);
  /// Returns the digest as 64 lower-case hexadecimal digits and resets the object.
  std::string FinishHex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// SHA-256 of `bytes`, 64 lower-case hexadecimal digits.
std::string Sha256Hex(std::string_view bytes);

/// `n` bytes from the system's cryptographic generator, for secrets and epochs. Aborts if the generator
/// fails.
std::string RandomBytes(size_t n);
/// A random 64-bit number that is never 0, from the same generator.
uint64_t RandomNonZero64();

std::string ToHex(std::string_view bytes);
/// Decodes an even number of hexadecimal digits; nullopt for any other text.
std::optional<std::string> FromHex(std::string_view digits);

/// Compares secrets in a time that depends only on the lengths.
bool ConstantTimeEqual(std::string_view a, std::string_view b);

}  // namespace atl

#endif  // ATOLL_COMMON_DIGEST_H_
