#ifndef ATOLL_CORE_AVERAGED_RANGES_H_
#define ATOLL_CORE_AVERAGED_RANGES_H_

#include <vector>

#include "core/fragment_plan.h"

namespace atl {

/// The averaged tensors of a fragment, each with the gap behind it; ascending, neighbours joined.
std::vector<ElementRange> AveragedRanges(const FragmentLayout& layout);

}  // namespace atl

#endif  // ATOLL_CORE_AVERAGED_RANGES_H_
