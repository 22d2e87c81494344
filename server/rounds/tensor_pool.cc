#include "server/rounds/tensor_pool.h"

#include <utility>

#include "common/mutex.h"

namespace atl {

struct TensorPool::Spare {
  Mutex mutex;
  std::unique_ptr<TensorBuffer> buffer ABSL_GUARDED_BY(mutex);
};

TensorPool::TensorPool() : spare_(std::make_shared<Spare>()) {}

std::shared_ptr<TensorBuffer> TensorPool::Take(uint64_t elements) {
  std::unique_ptr<TensorBuffer> buffer;
  {
    MutexLock lock(&spare_->mutex);
    buffer = std::move(spare_->buffer);
  }
  if (buffer == nullptr || buffer->values().size() != elements)
    buffer = std::make_unique<TensorBuffer>(elements);
  const std::weak_ptr<Spare> home = spare_;
  return {buffer.release(), [home](TensorBuffer* done) {
            std::unique_ptr<TensorBuffer> returned(done);
            const std::shared_ptr<Spare> spare = home.lock();
            if (spare == nullptr) return;
            // The lock ends before what was there, now in `returned`, is freed.
            MutexLock lock(&spare->mutex);
            std::swap(spare->buffer, returned);
          }};
}

}  // namespace atl
