#include "worker/torch/key_value_cache.h"

namespace atl {

KeyValueCache::Entry KeyValueCache::Extend(size_t layer, const torch::Tensor& keys,
                                           const torch::Tensor& values) {
  Entry& kept = layers_[layer];
  if (!kept.keys.defined()) {
    const std::vector<int64_t> shape = {keys.size(0), keys.size(1), capacity_, keys.size(3)};
    kept = {.keys = torch::empty(shape, keys.options()), .values = torch::empty(shape, values.options())};
  }
  const int64_t time = keys.size(2);
  kept.keys.narrow(2, length_, time).copy_(keys);
  kept.values.narrow(2, length_, time).copy_(values);
  return {.keys = kept.keys.narrow(2, 0, length_ + time), .values = kept.values.narrow(2, 0, length_ + time)};
}

}  // namespace atl
