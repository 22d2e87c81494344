#ifndef ATOLL_COMMON_BYTE_BUDGET_H_
#define ATOLL_COMMON_BYTE_BUDGET_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "common/mutex.h"

namespace atl {

/// A limit on bytes held by many owners. Never blocks: a reservation that does not fit is rejected, and the
/// client retries later. Thread-safe. Outlives its reservations.
class ByteBudget {
 public:
  /// Releases its bytes on destruction. Movable; a moved-from reservation holds nothing.
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

  /// `name` appears in rejections: "contributions in flight".
  ByteBudget(std::string name, uint64_t capacity_bytes) : name_(std::move(name)), capacity_(capacity_bytes) {}

  /// ResourceExhausted, with the numbers, if the bytes do not fit now; InvalidArgument if they can never fit.
  absl::StatusOr<Reservation> TryReserve(uint64_t bytes);

  uint64_t capacity() const;
  /// Applies to later reservations. Existing ones stay, even above the new capacity.
  void SetCapacity(uint64_t bytes);
  uint64_t used() const;
  /// Maximum number of bytes in use at once so far.
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
