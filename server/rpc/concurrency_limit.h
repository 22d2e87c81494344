#ifndef ATOLL_SERVER_RPC_CONCURRENCY_LIMIT_H_
#define ATOLL_SERVER_RPC_CONCURRENCY_LIMIT_H_

#include <atomic>
#include <cstddef>

namespace atl {

/// So many may sit at the same time. Thread-safe.
class ConcurrencyLimit {
 public:
  explicit ConcurrencyLimit(size_t count) : free_(static_cast<std::ptrdiff_t>(count)) {}

  /// False when none is free; else Leave once.
  bool Take() {
    if (free_.fetch_sub(1) > 0) return true;
    free_.fetch_add(1);
    return false;
  }
  void Leave() { free_.fetch_add(1); }

 private:
  std::atomic<std::ptrdiff_t> free_;
};

}  // namespace atl

#endif  // ATOLL_SERVER_RPC_CONCURRENCY_LIMIT_H_
