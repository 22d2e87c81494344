#ifndef ATOLL_CORE_HF_VALUES_H_
#define ATOLL_CORE_HF_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

// Values of tensors in files: float32 and the two 16-bit formats.

namespace atl {

/// How a file holds floating-point values.
enum class FileDtype : uint8_t { kF32, kF16, kBf16 };

/// "F32", "F16", "BF16", as safetensors spells them; nullopt for any other.
std::optional<FileDtype> FileDtypeOf(std::string_view safetensors_name);
/// As safetensors spells it: "BF16".
const char* SafetensorsName(FileDtype dtype);
/// As config.json spells it: "bfloat16".
const char* TorchName(FileDtype dtype);
size_t BytesPerValue(FileDtype dtype);

/// The file's values as float32, exactly. `bytes` holds values.size() of them.
void WidenValues(std::span<const std::byte> bytes, FileDtype dtype, std::span<float> values);

/// Rounds to nearest, ties to even, into bytes of values.size() * BytesPerValue(dtype). Returns the first
/// position whose finite value is beyond the largest of the dtype, where rounding would make it infinite;
/// `bytes` is then unspecified.
std::optional<uint64_t> NarrowValues(std::span<const float> values, FileDtype dtype,
                                     std::span<std::byte> bytes);

/// A matrix of `rows` x `columns` in row order, as one of `columns` x `rows`. The spans do not overlap.
void Transpose(std::span<const float> matrix, uint64_t rows, uint64_t columns, std::span<float> result);

}  // namespace atl

#endif  // ATOLL_CORE_HF_VALUES_H_
