#include "core/hf/values.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/float_bits.h"

namespace atl {
namespace {

constexpr uint32_t kMagnitude = 0x7fffffff;
// The least magnitudes that round to infinity: halfway between the largest value and the next power of two,
// where the tie goes to the even one, which is infinity.
constexpr uint32_t kBeyondF16 = 0x477ff000;   // 65520
constexpr uint32_t kBeyondBf16 = 0x7f7f8000;  // 2^128 - 2^119
constexpr uint64_t kTile = 64;                // of a transposition: two tiles of floats fit the first cache

template <typename Widen>
void WidenHalves(std::span<const std::byte> bytes, std::span<float> values, Widen widen) {
  for (size_t i = 0; i < values.size(); ++i) {
    uint16_t half = 0;
    std::memcpy(&half, bytes.data() + i * sizeof(half), sizeof(half));
    values[i] = widen(half);
  }
}

template <typename Narrow>
std::optional<uint64_t> NarrowToHalves(std::span<const float> values, std::span<std::byte> bytes,
                                       uint32_t beyond, Narrow narrow) {
  for (size_t i = 0; i < values.size(); ++i) {
    const uint32_t magnitude = std::bit_cast<uint32_t>(values[i]) & kMagnitude;
    if (magnitude >= beyond && IsFiniteBits(values[i])) return i;
    const uint16_t half = narrow(values[i]);
    std::memcpy(bytes.data() + i * sizeof(half), &half, sizeof(half));
  }
  return std::nullopt;
}

}  // namespace

std::optional<FileDtype> FileDtypeOf(std::string_view safetensors_name) {
  for (const FileDtype dtype : {FileDtype::kF32, FileDtype::kF16, FileDtype::kBf16}) {
    if (safetensors_name == SafetensorsName(dtype)) return dtype;
  }
  return std::nullopt;
}

const char* SafetensorsName(FileDtype dtype) {
  switch (dtype) {
    case FileDtype::kF16:
      return "F16";
    case FileDtype::kBf16:
      return "BF16";
    case FileDtype::kF32:
      break;
  }
  return "F32";
}

const char* TorchName(FileDtype dtype) {
  switch (dtype) {
    case FileDtype::kF16:
      return "float16";
    case FileDtype::kBf16:
      return "bfloat16";
    case FileDtype::kF32:
      break;
  }
  return "float32";
}

size_t BytesPerValue(FileDtype dtype) { return dtype == FileDtype::kF32 ? sizeof(float) : sizeof(uint16_t); }

void WidenValues(std::span<const std::byte> bytes, FileDtype dtype, std::span<float> values) {
  if (values.empty()) return;
  switch (dtype) {
    case FileDtype::kF32:
      std::memcpy(values.data(), bytes.data(), values.size_bytes());
      return;
    case FileDtype::kF16:
      return WidenHalves(bytes, values, FloatFromFp16);
    case FileDtype::kBf16:
      return WidenHalves(bytes, values, FloatFromBf16);
  }
}

std::optional<uint64_t> NarrowValues(std::span<const float> values, FileDtype dtype,
                                     std::span<std::byte> bytes) {
  switch (dtype) {
    case FileDtype::kF16:
      return NarrowToHalves(values, bytes, kBeyondF16, Fp16FromFloat);
    case FileDtype::kBf16:
      return NarrowToHalves(values, bytes, kBeyondBf16, Bf16FromFloat);
    case FileDtype::kF32:
      break;
  }
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), values.size_bytes());
  return std::nullopt;
}

void Transpose(std::span<const float> matrix, uint64_t rows, uint64_t columns, std::span<float> result) {
  for (uint64_t first_row = 0; first_row < rows; first_row += kTile) {
    const uint64_t last_row = std::min(rows, first_row + kTile);
    for (uint64_t first_column = 0; first_column < columns; first_column += kTile) {
      const uint64_t last_column = std::min(columns, first_column + kTile);
      for (uint64_t row = first_row; row < last_row; ++row) {
        for (uint64_t column = first_column; column < last_column; ++column) {
          result[column * rows + row] = matrix[row * columns + column];
        }
      }
    }
  }
}

}  // namespace atl
