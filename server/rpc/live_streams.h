#ifndef ATOLL_SERVER_RPC_LIVE_STREAMS_H_
#define ATOLL_SERVER_RPC_LIVE_STREAMS_H_

#include <memory>
#include <optional>
#include <vector>

#include "common/clock.h"
#include "common/mutex.h"
#include "common/periodic_task.h"

namespace atl {

/// A stream as the watchdog and the shutdown see it. Both calls come from foreign threads, at any moment of
/// the stream's life and after its end; they must not block.
class LiveStream {
 public:
  virtual ~LiveStream() = default;
  /// Ends the stream when it has made no progress for too long.
  virtual void CheckProgress(MonoTime now) = 0;
  /// The server is going: ends the stream if it would otherwise wait for something to happen.
  virtual void OnShutdown() = 0;
};

/// The open streams, held weakly, with a thread that looks at each of them once per period. Thread-safe.
class LiveStreams {
 public:
  /// `clock` outlives this.
  LiveStreams(const Clock* clock, Duration period, size_t most);
  ~LiveStreams();

  /// After Shutdown a stream that is added is told so at once. False when there are `most` already: it is to
  /// be refused.
  bool Add(const std::weak_ptr<LiveStream>& stream);
  /// One look at every stream; the thread does this.
  void CheckAll();
  /// Tells every stream that is open. Idempotent.
  void Shutdown();
  size_t size() const;

 private:
  /// When it is full, whether it still is gets looked at this often.
  static constexpr Duration kLookInterval = Seconds(0.05);

  std::vector<std::shared_ptr<LiveStream>> Live();
  bool HasRoom() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock* const clock_;
  const size_t most_;
  mutable Mutex mutex_;
  std::vector<std::weak_ptr<LiveStream>> streams_ ABSL_GUARDED_BY(mutex_);
  std::optional<MonoTime> found_full_at_ ABSL_GUARDED_BY(mutex_);
  bool shutting_down_ ABSL_GUARDED_BY(mutex_) = false;
  PeriodicTask watchdog_;  // last: it uses everything above
};

}  // namespace atl

#endif  // ATOLL_SERVER_RPC_LIVE_STREAMS_H_
