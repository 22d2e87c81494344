#include "core/averaged_ranges.h"

namespace atl {

std::vector<ElementRange> AveragedRanges(const FragmentLayout& layout) {
  std::vector<ElementRange> ranges;
  for (size_t s = 0; s < layout.slots.size(); ++s) {
    if (!layout.slots[s].averaged) continue;
    const uint64_t begin = layout.slots[s].offset;
    const uint64_t end = s + 1 < layout.slots.size() ? layout.slots[s + 1].offset : layout.elements;
    if (!ranges.empty() && ranges.back().end == begin) {
      ranges.back().end = end;
    } else {
      ranges.push_back({.begin = begin, .end = end});
    }
  }
  return ranges;
}

}  // namespace atl
