#ifndef ATOLL_CORE_HF_CONFIG_BOUNDS_H_
#define ATOLL_CORE_HF_CONFIG_BOUNDS_H_

#include "core/bounded_json.h"

namespace atl {

/// Of a config.json. It may list thousands of labels.
inline constexpr JsonBounds kHfConfigBounds = {.depth = 16, .values = 100000};

}  // namespace atl

#endif  // ATOLL_CORE_HF_CONFIG_BOUNDS_H_
