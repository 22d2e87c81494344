#include "common/byte_budget.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/human.h"

namespace atl {

ByteBudget::Reservation& ByteBudget::Reservation::operator=(Reservation&& other) noexcept {
  if (this != &other) {
    Release();
    budget_ = std::exchange(other.budget_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
  }
  return *this;
}

void ByteBudget::Reservation::Release() {
  if (budget_ != nullptr) budget_->Return(bytes_);
  budget_ = nullptr;
  bytes_ = 0;
}

absl::StatusOr<ByteBudget::Reservation> ByteBudget::TryReserve(uint64_t bytes) {
  MutexLock lock(&mutex_);
  if (bytes > capacity_) {
    return absl::InvalidArgumentError(absl::StrCat(name_, ": ", HumanBytes(bytes), " (", bytes,
                                                   " bytes) can never fit into the budget of ",
                                                   HumanBytes(capacity_)));
  }
  if (used_ > capacity_ || bytes > capacity_ - used_) {
    return absl::ResourceExhaustedError(absl::StrCat(name_, ": ", HumanBytes(bytes), " do not fit, ",
                                                     HumanBytes(used_), " of ", HumanBytes(capacity_),
                                                     " are in use; retry later"));
  }
  used_ += bytes;
  peak_ = std::max(peak_, used_);
  return Reservation(this, bytes);
}

uint64_t ByteBudget::capacity() const {
  MutexLock lock(&mutex_);
  return capacity_;
}

void ByteBudget::SetCapacity(uint64_t bytes) {
  MutexLock lock(&mutex_);
  capacity_ = bytes;
}

uint64_t ByteBudget::used() const {
  MutexLock lock(&mutex_);
  return used_;
}

uint64_t ByteBudget::peak() const {
  MutexLock lock(&mutex_);
  return peak_;
}

void ByteBudget::Return(uint64_t bytes) {
  MutexLock lock(&mutex_);
  used_ -= bytes;
}

}  // namespace atl
