#ifndef ATOLL_SERVER_RUN_SEED_GRANT_H_
#define ATOLL_SERVER_RUN_SEED_GRANT_H_

#include <algorithm>
#include <cstdint>
#include <span>

#include "common/ids.h"

namespace atl {

/// Which trainer may upload version 0. The first one keeps the grant while it is live and its uploads do not
/// break off again and again; then the grant passes to another one. Pure state, not thread-safe.
class SeedGrant {
 public:
  /// An upload has to arrive whole, so a link that breaks more often than it takes never seeds the run.
  static constexpr uint32_t kUploads = 3;

  /// `eligible`: live trainers that have the model, in order of name. When the holder is none of them, the
  /// grant passes to the first. True when it moved to another worker.
  bool Refresh(std::span<const WorkerName> eligible) {
    if (std::ranges::find(eligible, holder_) != eligible.end()) return false;
    return PassTo(eligible.empty() ? WorkerName() : eligible.front());
  }

  /// An upload of the holder ended before it was whole. With the third one the grant passes to the next of
  /// `eligible`, which are in order of name, the first after the last. True when it did.
  bool UploadAborted(std::span<const WorkerName> eligible) {
    if (++aborted_uploads_ < kUploads) return false;
    const auto next = std::ranges::upper_bound(eligible, holder_);
    const WorkerName to = next != eligible.end() ? *next : eligible.empty() ? holder_ : eligible.front();
    return to != holder_ && PassTo(to);
  }

  /// Empty: nobody has it.
  const WorkerName& holder() const { return holder_; }
  bool HeldBy(const WorkerName& worker) const { return !worker.empty() && worker == holder_; }
  /// Uploads of the holder that ended before they were whole.
  uint32_t aborted_uploads() const { return aborted_uploads_; }

 private:
  bool PassTo(const WorkerName& next) {
    const bool moved = next != holder_ && !next.empty();
    holder_ = next;
    aborted_uploads_ = 0;
    return moved;
  }

  WorkerName holder_;
  uint32_t aborted_uploads_ = 0;
};

}  // namespace atl

#endif  // ATOLL_SERVER_RUN_SEED_GRANT_H_
