#ifndef ATOLL_CLIENT_SYNC_PUSH_OUTCOMES_H_
#define ATOLL_CLIENT_SYNC_PUSH_OUTCOMES_H_

#include <map>
#include <optional>

#include "client/sync/connection.h"
#include "common/ids.h"
#include "common/mutex.h"

namespace atl {

/// The outcome of a push, and of the content that it carried.
enum class PushOutcome : uint8_t {
  kCounted,
  kCarried,    // it does not count; the content is kept and goes into the next push
  kDropped,    // it does not count; the content was not finite
  kForgotten,  // the coordinator no longer knows whether it counted; the content is not sent again
  kKept,       // there is no answer yet; the state directory keeps it for the next life
  kUnkept,     // there is no answer yet; the state directory does not keep it
  kUnpacked,   // nothing was sent: the worker had no time left to encode its steps, which are lost
};

struct UncountedPush {
  PushKey key;
  PushOutcome outcome = PushOutcome::kCarried;
};

/// The newest push of each fragment, unless it counts: the reason for the exit code and the last message of a
/// worker that drains. A push without an answer does not count yet. Thread-safe.
class PushOutcomes {
 public:
  /// The outcome of the newest push of a fragment.
  void Note(const PushKey& push, PushOutcome outcome) ABSL_LOCKS_EXCLUDED(mutex_);
  /// The newest push of a fragment that is not known to count. None: each newest push counted, or the worker
  /// pushed nothing.
  std::optional<UncountedPush> LastUncounted() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable Mutex mutex_;
  std::map<FragmentId, UncountedPush> uncounted_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace atl

#endif  // ATOLL_CLIENT_SYNC_PUSH_OUTCOMES_H_
