#ifndef ATOLL_CORE_MANIFEST_H_
#define ATOLL_CORE_MANIFEST_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/ids.h"

namespace atl {

/// One tensor of the model. Values are float32 on the coordinator, always. `embedding` marks a lookup table,
/// which some merges average plainly. `averaged` marks what is no parameter, such as the running statistics
/// of a BatchNorm: a version has the mean of the workers' values, without an outer optimizer
/// (docs/reference/outer_step.md, "Averaged tensors"). A tensor is at most one of them.
struct TensorSpec {
  std::string name = {};
  std::vector<int64_t> shape = {};  // empty: a scalar
  bool embedding = false;
  bool averaged = false;
  uint64_t elements() const;
  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

/// The model's tensors in the order that the model declares them. Immutable once a run is seeded.
struct Manifest {
  std::vector<TensorSpec> tensors = {};
  /// Hash of parameters that nobody trains but every worker needs, such as the base model under LoRA; empty:
  /// there are none. Workers with different ones must not train together.
  std::string base_fingerprint = {};
  uint64_t elements() const;
  /// The first averaged tensor; null: there is none.
  const TensorSpec* FirstAveraged() const;
  friend bool operator==(const Manifest&, const Manifest&) = default;
};

inline constexpr size_t kMaxTensors = 65536;
inline constexpr size_t kMaxTensorName = 512;
inline constexpr size_t kMaxTensorRank = 8;
inline constexpr uint64_t kMaxRunElements = uint64_t{1} << 40;
inline constexpr size_t kMinBaseFingerprint = 16;
inline constexpr size_t kMaxBaseFingerprint = 128;
/// The key of a safetensors file's metadata, which no tensor can have there.
inline constexpr std::string_view kReservedTensorName = "__metadata__";

/// Refuses duplicate or empty names, non-positive dimensions, overflow, and anything above the bounds; names
/// the tensor.
absl::Status ValidateManifest(const Manifest& manifest);

/// SHA-256 (lower-case hex) of the canonical text of the manifest; what a Join checks. The text has a line
/// "name dim dim ... [embedding|averaged]\n" per tensor, then "base FINGERPRINT\n" if there is one. The least
/// length of a fingerprint keeps that line apart from one of a tensor named "base".
std::string ManifestHash(const Manifest& manifest);

/// The first difference between a worker's model and that of its run, for messages: "tensor 'b' has shape [3,
/// 4], and [3, 5] in the run". Empty: there is none.
std::string DifferenceFromRun(const Manifest& run, const Manifest& other);

}  // namespace atl

#endif  // ATOLL_CORE_MANIFEST_H_
