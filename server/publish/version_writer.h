#ifndef ATOLL_SERVER_PUBLISH_VERSION_WRITER_H_
#define ATOLL_SERVER_PUBLISH_VERSION_WRITER_H_

#include <functional>
#include <memory>

#include "common/sleeper.h"
#include "common/task_queue.h"
#include "server/coordinator_context.h"
#include "server/publish/snapshot.h"
#include "server/rounds/fragment_state.h"

namespace atl {

/// Writes the tensors of published versions behind them, on a thread of its own, and tries again for as long
/// as the disk refuses. Pulls of a version just published go first: it is written when nobody reads it
/// any more, but a second after its publication at the latest, and at once when the next round needs it soon,
/// that is, when a contribution has begun to arrive. Nothing that was acknowledged hangs on it: the version's
/// record is on disk already. Thread-safe.
class VersionWriter {
 public:
  explicit VersionWriter(const CoordinatorContext& context) : context_(context), queue_("version-writer") {}
  ~VersionWriter() { Stop(); }

  /// `state` must stay as it is until `done` was called (on the version writer's thread). When it is stopped
  /// first, `done` is not called; the version can be replayed from its record. `published` is on
  /// PublishedVersions already.
  void Store(const FragmentState* state, const SnapshotPtr& published, std::function<void()> done);
  /// Makes one last attempt at what is waiting, then joins. Idempotent.
  void Stop();

 private:
  using SnapshotWatch = std::weak_ptr<const Snapshot>;

  void Run(const FragmentState& state, const std::function<void()>& done);
  void LetReadersGoFirst(FragmentId fragment, const SnapshotWatch& published, MonoTime until);

  const CoordinatorContext& context_;
  InterruptibleSleeper sleeper_;
  TaskQueue queue_;  // last: its thread uses everything above
};

}  // namespace atl

#endif  // ATOLL_SERVER_PUBLISH_VERSION_WRITER_H_
