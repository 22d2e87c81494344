#ifndef ATOLL_CORE_MANIFEST_H_
#define ATOLL_CORE_MANIFEST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/ids.h"

namespace atl {

/// One parameter tensor. Parameters are float32 on the coordinator, always. `embedding` marks a lookup table,
/// which some merges average plainly.
struct TensorSpec {
  std::string name = {};
  std::vector<int64_t> shape = {};  // empty: a scalar
  bool embedding = false;
  uint64_t elements() const;
  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

/// The model's tensors in the order that the model declares them. Immutable once a run is seeded.
struct Manifest {
  std::vector<TensorSpec> tensors = {};
  uint64_t elements() const;
  friend bool operator==(const Manifest&, const Manifest&) = default;
};

inline constexpr size_t kMaxTensors = 65536;
inline constexpr size_t kMaxTensorName = 512;
inline constexpr size_t kMaxTensorRank = 8;
inline constexpr uint64_t kMaxRunElements = uint64_t{1} << 40;

/// Refuses duplicate or empty names, non-positive dimensions, overflow, and anything above the bounds; names
/// the tensor.
absl::Status ValidateManifest(const Manifest& manifest);

/// SHA-256 (lower-case hex) of the canonical text of the manifest ("name dim dim ... [embedding]\n" per
/// tensor); what a Join checks.
std::string ManifestHash(const Manifest& manifest);

}  // namespace atl

#endif  // ATOLL_CORE_MANIFEST_H_
