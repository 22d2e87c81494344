#ifndef ATOLL_SERVER_ROUNDS_PAST_CONTRIBUTIONS_H_
#define ATOLL_SERVER_ROUNDS_PAST_CONTRIBUTIONS_H_

#include <cstdint>
#include <map>
#include <utility>

#include "common/ids.h"
#include "core/contribution.h"
#include "storage/run_store.h"

namespace atl {

/// The same codec, length and checksum.
bool SameContent(const Contribution& a, const Contribution& b);

/// What went into the last versions of one fragment, for as long as a contribution of theirs could be sent
/// again and be admitted. Pure state, not thread-safe.
class PastContributions {
 public:
  explicit PastContributions(Epoch epoch) : epoch_(epoch) {}

  /// The version was committed, in this epoch or before it.
  void Note(const RoundRecord& record, uint32_t staleness_limit);
  /// Of earlier bases it is not known any more who contributed, or nobody of this epoch can have begun on
  /// them.
  Version remembered_from() const { return remembered_from_; }

  /// The contribution of this worker on this base, if it is part of a committed version that is remembered.
  const Contribution* Find(Version base, const WorkerName& worker) const;
  /// Of this worker, on another base that is remembered, with the same bytes and not zero; null: none. Bytes
  /// are compared by length, checksum and norm.
  const Contribution* FindSame(const Contribution& contribution) const;

 private:
  Epoch epoch_;
  std::map<std::pair<Version, WorkerName>, Contribution> committed_;  // by base
  Version remembered_from_;
};

}  // namespace atl

#endif  // ATOLL_SERVER_ROUNDS_PAST_CONTRIBUTIONS_H_
