#ifndef ATOLL_CORE_RANK_LIMITS_H_
#define ATOLL_CORE_RANK_LIMITS_H_

#include <cstdint>

namespace atl {

/// Ranks of one worker, whatever the settings. (Protocol: Capabilities.ranks.)
inline constexpr uint32_t kMaxRanks = 1024;
/// Ranks of one worker that a coordinator takes without --max-ranks: the GPUs of one host.
inline constexpr uint32_t kDefaultMaxRanks = 8;

}  // namespace atl

#endif  // ATOLL_CORE_RANK_LIMITS_H_
