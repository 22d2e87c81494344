#ifndef ATOLL_CORE_HF_TENSOR_MATCH_H_
#define ATOLL_CORE_HF_TENSOR_MATCH_H_

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/hf/layout.h"
#include "core/hf/values.h"
#include "core/safetensors.h"

namespace atl {

/// A tensor that a model's files hold. Points into what the caller keeps.
struct FoundTensor {
  const SafetensorsEntry* entry = nullptr;
  std::string_view file;  // for messages
};

/// A found tensor whose name, shape and dtype are those of a table.
struct MatchedTensor {
  FoundTensor found;
  FileDtype dtype = FileDtype::kF32;
};

/// Which found tensor is which of a table.
struct TensorMatch {
  std::vector<MatchedTensor> tensors;               // parallel to HfLayout::tensors
  std::vector<std::optional<MatchedTensor>> zeros;  // parallel to HfLayout::zeros
  std::optional<MatchedTensor> tied_head;
};

enum class ExtraTensors : uint8_t { kReject, kIgnore };

/// Finds the table's tensors by name, with and without its prefix. Every tensor of the table must be there
/// once, in its shape and as F32, F16 or BF16. InvalidArgument names the file and the tensor, says what was
/// expected, and which name is near. `source`: what holds all the files, for a tensor that is in none.
absl::StatusOr<TensorMatch> MatchTensors(const HfLayout& layout, std::span<const FoundTensor> found,
                                         std::string_view source, ExtraTensors extra = ExtraTensors::kReject);

/// Checks the values of what matched: they are finite, zero where the run has no such tensor, and those of
/// the output head are the embedding's when both are one. InvalidArgument names file, tensor and position.
absl::Status CheckValues(const HfLayout& layout, const TensorMatch& match);

/// Writes the values of tensor `index` of the table in the run's order, as float32.
void ReadValues(const HfLayout& layout, const TensorMatch& match, size_t index, std::span<float> values);

}  // namespace atl

#endif  // ATOLL_CORE_HF_TENSOR_MATCH_H_
