#ifndef ATOLL_CORE_SAFETENSORS_H_
#define ATOLL_CORE_SAFETENSORS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/manifest.h"

// The safetensors file format (Hugging Face): 8 bytes little-endian header length, a JSON header that maps
// each tensor's name to dtype, shape and byte range, then the tensors' bytes without gaps. Pure: bytes in,
// bytes out.

namespace atl {

/// Bound on a foreign header, as in the format's own library.
inline constexpr uint64_t kMaxSafetensorsHeader = 100'000'000;

/// One tensor of a file. `bytes` points into the file's bytes.
struct SafetensorsEntry {
  std::string name;
  std::string dtype;  // "F32", "F16", "BF16", ...
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;
};

struct SafetensorsFile {
  std::vector<SafetensorsEntry> tensors;        // in the order of their bytes
  std::map<std::string, std::string> metadata;  // "__metadata__"
};

/// Bytes of one value of a dtype; 0: unknown.
uint64_t SafetensorsDtypeBytes(std::string_view dtype);

/// A tensor of a file that is to be written.
struct SafetensorsSpec {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
};

/// Header of a file that holds these tensors in this order, padded with spaces so that the data starts at a
/// multiple of 8 bytes.
std::string SafetensorsHeader(std::span<const SafetensorsSpec> tensors,
                              const std::map<std::string, std::string>& metadata);

/// The same for the manifest's tensors as float32.
std::string SafetensorsHeader(const Manifest& manifest, const std::map<std::string, std::string>& metadata);

/// What a file says of the manifest beyond names and shapes, as metadata: "base_fingerprint", and
/// "embeddings" and "averaged" as JSON lists of names. Only what is there.
std::map<std::string, std::string> ManifestMetadata(const Manifest& manifest);

/// The manifest of a file: its tensors in the order of their bytes, and what ManifestMetadata wrote.
/// InvalidArgument names `source`, and the tensor that no run can have.
absl::StatusOr<Manifest> ManifestOfFile(const SafetensorsFile& file, std::string_view source);

/// Checks everything before it returns: lengths, ranges without overlap or gap, shape x dtype = bytes, bounds
/// on names, rank, number of tensors and on the memory that the header needs, no name twice. InvalidArgument
/// names `source` and the tensor.
absl::StatusOr<SafetensorsFile> ParseSafetensors(std::span<const std::byte> file, std::string_view source);

}  // namespace atl

#endif  // ATOLL_CORE_SAFETENSORS_H_
