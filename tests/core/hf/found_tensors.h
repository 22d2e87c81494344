#ifndef ATOLL_TESTS_CORE_HF_FOUND_TENSORS_H_
#define ATOLL_TESTS_CORE_HF_FOUND_TENSORS_H_

#include <cstring>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "core/hf/tensor_match.h"

namespace atl {

/// Tensors of a file that is only in memory.
class FoundTensors {
 public:
  /// Float32 values.
  void Add(const std::string& name, const std::vector<int64_t>& shape, const std::vector<float>& values) {
    AddRaw(name, "F32", shape, std::as_bytes(std::span(values)));
  }
  void AddRaw(const std::string& name, const std::string& dtype, const std::vector<int64_t>& shape,
              std::span<const std::byte> bytes) {
    const auto& kept = bytes_.emplace_back(bytes.begin(), bytes.end());
    entries_.push_back({.name = name, .dtype = dtype, .shape = shape, .bytes = kept});
    found_.push_back({.entry = &entries_.back(), .file = "m.safetensors"});
  }
  /// All of the table's tensors with the values 1, 2, ...
  void AddAll(const HfLayout& layout) {
    for (const HfTensor& tensor : layout.tensors) {
      uint64_t count = 1;
      for (const int64_t dimension : tensor.shape) count *= static_cast<uint64_t>(dimension);
      std::vector<float> values(count);
      for (uint64_t i = 0; i < count; ++i) values[i] = static_cast<float>(i + 1);
      Add(tensor.name, tensor.shape, values);
    }
  }
  SafetensorsEntry& entry(size_t index) { return entries_[index]; }

  std::span<const FoundTensor> all() const { return found_; }

 private:
  std::deque<std::vector<std::byte>> bytes_;
  std::deque<SafetensorsEntry> entries_;
  std::vector<FoundTensor> found_;
};

}  // namespace atl

#endif  // ATOLL_TESTS_CORE_HF_FOUND_TENSORS_H_
