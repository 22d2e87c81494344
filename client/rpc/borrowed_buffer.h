#ifndef ATOLL_CLIENT_RPC_BORROWED_BUFFER_H_
#define ATOLL_CLIENT_RPC_BORROWED_BUFFER_H_

#include <memory>

#include "common/mutex.h"

namespace atl {

/// Memory that is lent to somebody who takes shared pointers to what he reads, by somebody who can only wait
/// until he has it back. Thread-safe.
class BorrowedBuffer {
 public:
  BorrowedBuffer() : share_(&state_, [](State* state) { state->Return(); }) {}
  BorrowedBuffer(const BorrowedBuffer&) = delete;
  BorrowedBuffer& operator=(const BorrowedBuffer&) = delete;

  /// Every holder of a copy may read the memory.
  const std::shared_ptr<const void>& share() const { return share_; }
  /// The lender holds none any more.
  void Close() { share_.reset(); }
  /// After Close: nobody holds one.
  bool returned() const { return state_.returned(); }

 private:
  class State {
   public:
    void Return() {
      const MutexLock lock(&mutex_);
      returned_ = true;
    }
    bool returned() const {
      const MutexLock lock(&mutex_);
      return returned_;
    }

   private:
    mutable Mutex mutex_;
    bool returned_ ABSL_GUARDED_BY(mutex_) = false;
  };

  State state_;
  std::shared_ptr<const void> share_;
};

}  // namespace atl

#endif  // ATOLL_CLIENT_RPC_BORROWED_BUFFER_H_
