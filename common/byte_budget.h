#ifndef ATOLL_COMMON_BYTE_BUDGET_H_
#define ATOLL_COMMON_BYTE_BUDGET_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "common/mutex.h"

namespace atl {

/// A bound on bytes held by many owners. Never blocks: what does not fit is refused, and the client told to
/// come back. Thread-safe. Outlives its reservations.
class ByteBudget {
 public:
  /// Gives its bytes back when destroyed. Movable; the moved-from one holds nothing.
  class Reservation {
   public:
    Reservation() = default;
    ~Reservation() { Release(); }
    Reservation(Reservation&& other) noexcept
        : budget_(std::exchange(other.budget_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
    Reservation& operator=(Reservation&& other) noexcept;

    uint64_t bytes() const { return bytes_; }
    void Release();

   private:
    friend class ByteBudget;
    Reservation(ByteBudget* budget, uint64_t bytes) : budget_(budget), bytes_(bytes) {}

    ByteBudget* budget_ = nullptr;
    uint64_t bytes_ = 0;
  };

  /// `name` appears in refusals: "contributions in flight".
  ByteBudget(std::string name, uint64_t capacity_bytes) : name_(std::move(name)), capacity_(capacity_bytes) {}

  /// ResourceExhausted with the numbers when it does not fit; InvalidArgument when it never could.
  absl::StatusOr<Reservation> TryReserve(uint64_t bytes);

  uint64_t capacity() const;
  /// For reservations from here on; those that are held stay, also when they are more than this.
  void SetCapacity(uint64_t bytes);
  uint64_t used() const;
  /// The most that was ever used at once.
  uint64_t peak() const;

 private:
  void Return(uint64_t bytes);

  const std::string name_;
  mutable Mutex mutex_;
  uint64_t capacity_ ABSL_GUARDED_BY(mutex_);
  uint64_t used_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t peak_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace atl

#endif  // ATOLL_COMMON_BYTE_BUDGET_H_
