#ifndef ATOLL_SERVER_ROUNDS_TENSOR_BUFFER_H_
#define ATOLL_SERVER_ROUNDS_TENSOR_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace atl {

/// A long vector of float32, not initialised, aligned for the widest vector instructions. Movable.
class TensorBuffer {
 public:
  TensorBuffer() = default;
  explicit TensorBuffer(uint64_t elements);
  /// All zeros.
  static TensorBuffer Zeros(uint64_t elements);
  static TensorBuffer CopyOf(std::span<const float> values);

  std::span<float> values() { return {data_.get(), elements_}; }
  std::span<const float> values() const { return {data_.get(), elements_}; }
  std::span<const std::byte> bytes() const { return std::as_bytes(values()); }

 private:
  struct Free {
    void operator()(float* data) const;
  };
  std::unique_ptr<float[], Free> data_;
  size_t elements_ = 0;
};

}  // namespace atl

#endif  // ATOLL_SERVER_ROUNDS_TENSOR_BUFFER_H_
