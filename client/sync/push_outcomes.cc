#include "client/sync/push_outcomes.h"

namespace atl {

void PushOutcomes::Note(const PushKey& push, PushOutcome outcome) {
  const MutexLock lock(&mutex_);
  if (outcome == PushOutcome::kCounted) {
    uncounted_.erase(push.fragment);
  } else {
    uncounted_.insert_or_assign(push.fragment, UncountedPush{push, outcome});
  }
}

std::optional<UncountedPush> PushOutcomes::LastUncounted() const {
  const MutexLock lock(&mutex_);
  return uncounted_.empty() ? std::nullopt : std::optional(uncounted_.begin()->second);
}

}  // namespace atl
