#ifndef ATOLL_WORKER_TORCH_KEY_VALUE_CACHE_H_
#define ATOLL_WORKER_TORCH_KEY_VALUE_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "worker/torch/libtorch.h"

namespace atl {

/// Keys and values of the positions that a model has read, for each of its layers. With them the next token
/// costs one position instead of all. LanguageModel::NextLogits fills it. Not thread-safe. Methods throw what
/// LibTorch throws.
class KeyValueCache {
 public:
  /// Keys and values of one layer: [batch, groups, positions, head width].
  struct Entry {
    torch::Tensor keys;
    torch::Tensor values;
  };

  /// Holds up to `capacity` positions. The memory is taken when a layer's first positions arrive.
  KeyValueCache(size_t layers, int64_t capacity) : capacity_(capacity), layers_(layers) {}

  int64_t capacity() const { return capacity_; }
  /// Positions that all layers have.
  int64_t length() const { return length_; }

  /// Puts the positions that follow length() into a layer: [batch, groups, time, head width]. Requires
  /// length() + time <= capacity(). Returns what the layer has then; valid until Clear().
  Entry Extend(size_t layer, const torch::Tensor& keys, const torch::Tensor& values);

  /// After Extend() of every layer with `time` positions.
  void Advance(int64_t time) { length_ += time; }

  /// Forgets all positions and keeps the memory.
  void Clear() { length_ = 0; }

 private:
  const int64_t capacity_;
  int64_t length_ = 0;
  std::vector<Entry> layers_;
};

}  // namespace atl

#endif  // ATOLL_WORKER_TORCH_KEY_VALUE_CACHE_H_
