// Apart from fragment_plan.cc, which needs manifests and with them OpenSSL: a merge needs neither.
#include "core/fragment_plan.h"

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
