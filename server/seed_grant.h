#ifndef ATOLL_SERVER_SEED_GRANT_H_
#define ATOLL_SERVER_SEED_GRANT_H_

#include <algorithm>
#include <span>

#include "common/ids.h"

namespace atoll {

/// Which trainer may upload version 0. Whoever was there first keeps the grant for as long as it is live;
/// when it is not, the grant passes to the first by name of those that are. Pure state, not thread-safe.
class SeedGrant {
 public:
  /// `eligible`: live trainers that have the model, in order of name. True when the grant moved to another.
  bool Refresh(std::span<const WorkerName> eligible) {
    if (std::ranges::find(eligible, holder_) != eligible.end()) return false;
    const WorkerName next = eligible.empty() ? WorkerName() : eligible.front();
    const bool moved = next != holder_ && !next.empty();
    holder_ = next;
    return moved;
  }

  /// Empty: nobody has it.
  const WorkerName& holder() const { return holder_; }
  bool HeldBy(const WorkerName& worker) const { return !worker.empty() && worker == holder_; }

 private:
  WorkerName holder_;
};

}  // namespace atoll

#endif  // ATOLL_SERVER_SEED_GRANT_H_
