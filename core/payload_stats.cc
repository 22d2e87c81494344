#include "core/payload_stats.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "absl/strings/str_format.h"
#include "common/instruction_set.h"
#include "common/status.h"
#include "core/float_bits.h"
#include "core/fragment_plan.h"
#include "core/payload_squares.h"
#include "core/sparse_codec.h"

namespace atl {
namespace {

/// Sum of squares of one block, by the order of summation that the header fixes (DeterministicSumOfSquares).
/// GCC's vector types become whatever registers there are, with the same bits.
struct BlockSquares {
  ATOLL_KERNEL double Run(const float* values, size_t n) {
    using Floats = float __attribute__((vector_size(8 * sizeof(float))));
    using Doubles = double __attribute__((vector_size(8 * sizeof(double))));
    Doubles sums = {};
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
      Floats single;
      std::memcpy(&single, values + i, sizeof(single));
      const Doubles wide = __builtin_convertvector(single, Doubles);
      sums += wide * wide;
    }
    for (size_t lane = 0; i < n; ++i, ++lane) {
      const auto value = static_cast<double>(values[i]);
      sums[lane] += value * value;
    }
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
  }
};

struct AnyNonFinite {
  ATOLL_KERNEL bool Run(const float* values, size_t n) {
    uint32_t bad = 0;
    for (size_t i = 0; i < n; ++i) bad |= static_cast<uint32_t>(!IsFiniteBits(values[i]));
    return bad != 0;
  }
};

absl::Status NotFinite(uint64_t element, float value) {
  return absl::InvalidArgumentError(
      absl::StrFormat("element %d of the pseudo-gradient is not finite (%g); the worker must not push "
                      "it: drop the round and pull",
                      element, value));
}

/// The same sums over the values that are held: zeros add nothing to any lane.
absl::Status AddSparseSquares(const SparseCodec& codec, std::span<const std::byte> payload, uint64_t elements,
                              double& squares) {
  HeldValues held;
  for (uint64_t first = 0; first < elements; first += SparseCodec::kBlock) {
    codec.ReadBlock(payload, elements, first, held);
    std::array<double, 8> sums{};
    for (size_t i = 0; i < held.count; ++i) {
      if (!IsFiniteBits(held.values[i])) return NotFinite(first + held.positions[i], held.values[i]);
      const auto value = static_cast<double>(held.values[i]);
      sums[held.positions[i] % 8] += value * value;
    }
    squares += ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status AddSquares(const Codec& codec, std::span<const std::byte> payload, uint64_t elements,
                        double& squares) {
  if (codec.sparse() != nullptr) return AddSparseSquares(*codec.sparse(), payload, elements, squares);
  std::array<float, kChunkAlignment> buffer;
  for (uint64_t first = 0; first < elements; first += kChunkAlignment) {
    const std::span<float> block =
        std::span(buffer).first(std::min<uint64_t>(kChunkAlignment, elements - first));
    codec.DecodeRange(payload, elements, first, block);
    const double sum = RunKernel<BlockSquares>(block.data(), block.size());
    // Squares of finite float32 do not overflow float64, so the sum is finite when all values are: one pass.
    if (!std::isfinite(sum)) {
      const std::optional<uint64_t> bad = FirstNonFinite(block);
      return NotFinite(first + bad.value_or(0), block[bad.value_or(0)]);
    }
    squares += sum;
  }
  return absl::OkStatus();
}

absl::StatusOr<double> PayloadNorm(const Codec& codec, std::span<const std::byte> payload,
                                   uint64_t elements) {
  double squares = 0;
  ATOLL_RETURN_IF_ERROR(AddSquares(codec, payload, elements, squares));
  return std::sqrt(squares);
}

double VectorNorm(std::span<const float> values) {
  double squares = 0;
  for (uint64_t first = 0; first < values.size(); first += kChunkAlignment) {
    const uint64_t n = std::min<uint64_t>(kChunkAlignment, values.size() - first);
    squares += RunKernel<BlockSquares>(values.data() + first, size_t{n});
  }
  return std::sqrt(squares);
}

std::optional<uint64_t> FirstNonFinite(std::span<const float> values) {
  // Blocks are scanned without a branch inside; only a block with a hit is looked at value by value.
  constexpr uint64_t kScan = 1024;
  for (uint64_t first = 0; first < values.size(); first += kScan) {
    const std::span<const float> block =
        values.subspan(first, std::min<uint64_t>(kScan, values.size() - first));
    if (!RunKernel<AnyNonFinite>(block.data(), block.size())) continue;
    const auto hit =
        std::find_if(block.begin(), block.end(), [](float value) { return !IsFiniteBits(value); });
    return first + static_cast<uint64_t>(hit - block.begin());
  }
  return std::nullopt;
}

}  // namespace atl
