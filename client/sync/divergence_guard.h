#ifndef ATOLL_CLIENT_SYNC_DIVERGENCE_GUARD_H_
#define ATOLL_CLIENT_SYNC_DIVERGENCE_GUARD_H_

#include <cstdint>

#include "absl/status/status.h"
#include "client/sync/context.h"

namespace atl {

struct OuterSyncOptions {
  uint32_t max_rounds_not_finite = 3;  // in a row
};

/// An inner step failed because its loss or gradient was not finite, and not because a call was rejected.
bool IsNotFinite(const absl::Status& step);

/// Counts the rounds in a row that were dropped because a number was not finite.
class DivergenceGuard {
 public:
  DivergenceGuard(const OuterSyncOptions& options, const WorkerContext& context)
      : options_(options), context_(context) {}

  /// One more, on this base. Logs it and tells the observer.
  void RoundDropped(Version base, const absl::Status& why);
  /// A round was finite.
  void RoundCounted() { in_a_row_ = 0; }
  /// There were too many: the worker gives up.
  bool hopeless() const { return hopeless_; }
  /// What was not finite in the last round that was dropped.
  const absl::Status& why() const { return why_; }

 private:
  const OuterSyncOptions options_;
  const WorkerContext context_;
  uint32_t in_a_row_ = 0;
  bool hopeless_ = false;
  absl::Status why_;
};

}  // namespace atl

#endif  // ATOLL_CLIENT_SYNC_DIVERGENCE_GUARD_H_
