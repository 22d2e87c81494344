#ifndef ATOLL_SERVER_ROUNDS_TENSOR_POOL_H_
#define ATOLL_SERVER_ROUNDS_TENSOR_POOL_H_

#include <cstdint>
#include <memory>

#include "server/rounds/tensor_buffer.h"

namespace atl {

/// Hands out large buffers and takes the last one back when its last reader is done, because fresh pages cost
/// the kernel more than the merge that fills them. Keeps one spare: with the version before last gone, a
/// round needs exactly one new theta. Thread-safe; buffers may outlive the pool.
class TensorPool {
 public:
  TensorPool();
  /// Not initialised.
  std::shared_ptr<TensorBuffer> Take(uint64_t elements);

 private:
  struct Spare;
  std::shared_ptr<Spare> spare_;
};

}  // namespace atl

#endif  // ATOLL_SERVER_ROUNDS_TENSOR_POOL_H_
