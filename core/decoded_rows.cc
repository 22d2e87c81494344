#include "core/decoded_rows.h"

#include <algorithm>

#include "core/fragment_plan.h"

namespace atl {
namespace {

uint64_t WidthFor(std::span<const MergeInput> inputs) {
  uint64_t smallest = kSlotAlignment;
  for (const MergeInput& input : inputs) smallest = std::max(smallest, input.codec->block_elements());
  uint64_t width = kChunkAlignment;
  while (width > smallest && width * inputs.size() * sizeof(float) > kRowsBytes) width /= 2;
  return width;
}

}  // namespace

DecodedRows::DecodedRows(std::span<const MergeInput> inputs, uint64_t elements)
    : inputs_(inputs), elements_(elements), width_(WidthFor(inputs)), values_(inputs.size() * width_) {}

void DecodedRows::Load(uint64_t first, uint64_t n) {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    inputs_[i].codec->DecodeRange(inputs_[i].payload, elements_, first, {row(i), n});
  }
}

}  // namespace atl
