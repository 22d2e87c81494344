#ifndef ATOLL_SERVER_VERSION_STORER_H_
#define ATOLL_SERVER_VERSION_STORER_H_

#include <functional>

#include "common/sleeper.h"
#include "common/task_queue.h"
#include "server/fragment_state.h"
#include "server/services.h"

namespace atoll {

/// Writes the tensors of published versions behind them, on a thread of its own, and tries again for as long
/// as the disk refuses. Thread-safe.
class VersionStorer {
 public:
  explicit VersionStorer(const Services& services) : services_(services), queue_("storer") {}
  ~VersionStorer() { Stop(); }

  /// `state` must stay as it is until `done` was called (on the storer's thread). When it is stopped first,
  /// `done` is not called; the version can be replayed from its record.
  void Store(const FragmentState* state, std::function<void()> done);
  /// Makes one last attempt at what is waiting, then joins. Idempotent.
  void Stop();

 private:
  void Run(const FragmentState& state, const std::function<void()>& done);

  const Services& services_;
  InterruptibleSleeper sleeper_;
  TaskQueue queue_;  // last: its thread uses everything above
};

}  // namespace atoll

#endif  // ATOLL_SERVER_VERSION_STORER_H_
