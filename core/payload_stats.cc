#include "core/payload_stats.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/str_format.h"
#include "core/float_bits.h"
#include "core/fragment_plan.h"
#include "core/lane_sum.h"

namespace atoll {
namespace {

/// Sum of squares of one block, by the order of summation that the header fixes.
double BlockSquares(std::span<const float> values) {
  return LaneSquares(values.size(), [&](size_t i) { return static_cast<double>(values[i]); });
}

}  // namespace

absl::StatusOr<double> PayloadNorm(const Codec& codec, std::span<const std::byte> payload,
                                   uint64_t elements) {
  std::array<float, kChunkAlignment> buffer;
  double squares = 0;
  for (uint64_t first = 0; first < elements; first += kChunkAlignment) {
    const std::span<float> block =
        std::span(buffer).first(std::min<uint64_t>(kChunkAlignment, elements - first));
    codec.DecodeRange(payload, elements, first, block);
    if (const std::optional<uint64_t> bad = FirstNonFinite(block)) {
      return absl::InvalidArgumentError(
          absl::StrFormat("element %d of the pseudo-gradient is not finite (%g); the worker must not push "
                          "it: drop the round and pull",
                          first + *bad, block[*bad]));
    }
    squares += BlockSquares(block);
  }
  return std::sqrt(squares);
}

double VectorNorm(std::span<const float> values) {
  double squares = 0;
  for (uint64_t first = 0; first < values.size(); first += kChunkAlignment) {
    squares +=
        BlockSquares(values.subspan(first, std::min<uint64_t>(kChunkAlignment, values.size() - first)));
  }
  return std::sqrt(squares);
}

std::optional<uint64_t> FirstNonFinite(std::span<const float> values) {
  // Blocks are scanned without a branch inside; only a block with a hit is looked at value by value.
  constexpr uint64_t kScan = 1024;
  for (uint64_t first = 0; first < values.size(); first += kScan) {
    const std::span<const float> block =
        values.subspan(first, std::min<uint64_t>(kScan, values.size() - first));
    uint32_t bad = 0;
    for (const float value : block) bad |= static_cast<uint32_t>(!IsFiniteBits(value));
    if (bad == 0) continue;
    const auto hit =
        std::find_if(block.begin(), block.end(), [](float value) { return !IsFiniteBits(value); });
    return first + static_cast<uint64_t>(hit - block.begin());
  }
  return std::nullopt;
}

}  // namespace atoll
