#ifndef ATOLL_COMMON_SECRET_STREAM_H_
#define ATOLL_COMMON_SECRET_STREAM_H_

#include <cstddef>
#include <memory>
#include <span>

namespace atl {

/// Random bytes that nobody can predict or reproduce: ChaCha20 (RFC 8439) under a key from the system's
/// cryptographic generator. The key is stored nowhere else and wiped with the object. Two objects are
/// unrelated. Aborts if the generator fails, because there is no fallback. Not thread-safe.
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
