#ifndef ATOLL_COMMON_SECRET_STREAM_H_
#define ATOLL_COMMON_SECRET_STREAM_H_

#include <cstddef>
#include <memory>
#include <span>

namespace atl {

/// Random bytes that nobody can predict or make again: ChaCha20 (RFC 8439) under a key from the system's
/// cryptographic generator, which is kept nowhere else and wiped with the object. Two objects are unrelated.
/// Aborts when the generator is broken: there is nothing to fall back on. Not thread-safe.
class SecretStream {
 public:
  SecretStream();
  ~SecretStream();
  SecretStream(const SecretStream&) = delete;
  SecretStream& operator=(const SecretStream&) = delete;

  void Fill(std::span<std::byte> bytes);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace atl

#endif  // ATOLL_COMMON_SECRET_STREAM_H_
