#include "common/digest.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <array>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace atl {
namespace {

// OpenSSL fails here only if memory is exhausted or its installation is broken. There is no fallback.
void Require(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "atoll: OpenSSL failed in %s\n", what);
  std::abort();
}

}  // namespace

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(context); }
  void Begin() {
    Require(context != nullptr && EVP_DigestInit_ex(context, EVP_sha256(), nullptr) == 1,
            "EVP_DigestInit_ex");
  }
};

Sha256::Sha256() : state_(std::make_unique<State>()) { state_->Begin(); }
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::Update(std::string_view bytes) {
  Require(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1, "EVP_DigestUpdate");
}

void Sha256::Update(std::span<const std::byte> bytes) {
  Update(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

std::string Sha256::FinishHex() {
  std::array<unsigned char, 32> digest;
  Require(EVP_DigestFinal_ex(state_->context, digest.data(), nullptr) == 1, "EVP_DigestFinal_ex");
  state_->Begin();
  return ToHex(std::string_view(reinterpret_cast<const char*>(digest.data()), digest.size()));
}

std::string Sha256Hex(std::string_view bytes) {
  Sha256 hash;
  hash.Update(bytes);
  return hash.FinishHex();
}

std::string RandomBytes(size_t n) {
  std::string bytes(n, '\0');
  Require(n <= INT_MAX, "RandomBytes: more than 2 GiB asked");
  Require(RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(n)) == 1, "RAND_bytes");
  return bytes;
}

uint64_t RandomNonZero64() {
  uint64_t value = 0;
  while (value == 0) std::memcpy(&value, RandomBytes(sizeof(value)).data(), sizeof(value));
  return value;
}

std::string ToHex(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  hex.reserve(2 * bytes.size());
  for (const unsigned char byte : bytes) {
    hex.push_back(kDigits[byte >> 4]);
    hex.push_back(kDigits[byte & 15]);
  }
  return hex;
}

std::optional<std::string> FromHex(std::string_view digits) {
  const auto value = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
  };
  if (digits.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  for (size_t i = 0; i < digits.size(); i += 2) {
    const int high = value(digits[i]), low = value(digits[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes += static_cast<char>(high * 16 + low);
  }
  return bytes;
}

bool ConstantTimeEqual(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace atl
