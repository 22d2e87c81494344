#ifndef ATOLL_STORAGE_COMMITTED_TOKENS_H_
#define ATOLL_STORAGE_COMMITTED_TOKENS_H_

#include <cstdint>
#include <vector>

#include "core/contribution.h"

namespace atl {

/// Of the whole run, after these rounds (ascending by fragment and version). Tokens are counted with fragment
/// 0, and a restore may lower them, so that its newest record says it.
inline uint64_t CommittedTokens(const std::vector<RoundRecord>& rounds) {
  uint64_t tokens = 0;
  for (const RoundRecord& round : rounds) {
    if (round.fragment == FragmentId(0)) tokens = round.committed_tokens;
  }
  return tokens;
}

}  // namespace atl

#endif  // ATOLL_STORAGE_COMMITTED_TOKENS_H_
