#include "core/payload_gaps.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_format.h"

namespace atl {
namespace {

/// Calls `gap` with the bounds of each gap that is not empty, ascending, until it returns false.
void ForEachGap(const FragmentLayout& layout, absl::FunctionRef<bool(uint64_t begin, uint64_t end)> gap) {
  uint64_t begin = 0;
  for (const TensorSlot& slot : layout.slots) {
    if (begin < slot.offset && !gap(begin, slot.offset)) return;
    begin = slot.offset + slot.elements;
  }
  if (begin < layout.elements) gap(begin, layout.elements);
}

}  // namespace

absl::Status CheckGaps(const Codec& codec, std::span<const std::byte> payload, const FragmentLayout& layout) {
  std::array<float, kChunkAlignment> block;
  std::optional<uint64_t> decoded;  // the first value of `block`
  absl::Status checked;
  ForEachGap(layout, [&](uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) {
      const uint64_t first = i / kChunkAlignment * kChunkAlignment;
      if (decoded != first) {
        const size_t size = std::min<uint64_t>(kChunkAlignment, layout.elements - first);
        codec.DecodeRange(payload, layout.elements, first, std::span(block).first(size));
        decoded = first;
      }
      if (block[i - first] == 0) continue;
      checked = absl::InvalidArgumentError(
          absl::StrFormat("value %d of fragment %d lies between two tensors and is %g; it must be 0", i,
                          layout.id.value(), block[i - first]));
      return false;
    }
    return true;
  });
  return checked;
}

void ClearGaps(const FragmentLayout& layout, std::span<float> values) {
  ForEachGap(layout, [&](uint64_t begin, uint64_t end) {
    std::ranges::fill(values.subspan(begin, end - begin), 0.0F);
    return true;
  });
}

}  // namespace atl
