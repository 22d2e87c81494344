#ifndef ATOLL_CLIENT_SYNC_EXCHANGE_RUNNER_H_
#define ATOLL_CLIENT_SYNC_EXCHANGE_RUNNER_H_

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "client/sync/exchange_channel.h"
#include "common/mutex.h"
#include "common/thread.h"

namespace atl {

/// Runs exchanges beside the training thread, which is the only one that calls it.
class ExchangeRunner {
 public:
  using Work = std::function<void(ExchangeChannel&)>;
  virtual ~ExchangeRunner() = default;

  /// False, and nothing happens, when all channels are busy.
  virtual bool Start(Work work) = 0;
  virtual bool HasFreeChannel() = 0;
  /// On the calling thread, over a channel kept for it.
  virtual void RunHere(Work work) = 0;
  /// Returns when something has happened to an exchange (Notify), or after `at_most`.
  virtual void AwaitChange(Duration at_most) = 0;
  /// From any thread: there is something that the training thread may wait for.
  virtual void Notify() = 0;
  /// Returns true when no exchange is under way any more; false after `at_most`.
  virtual bool Finish(Duration at_most) = 0;
};

/// A thread per channel.
class ExchangeThreads final : public ExchangeRunner {
 public:
  ExchangeThreads(std::vector<std::unique_ptr<ExchangeChannel>> channels,
                  std::unique_ptr<ExchangeChannel> own_channel);
  ~ExchangeThreads() override;

  bool Start(Work work) override ABSL_LOCKS_EXCLUDED(mutex_);
  bool HasFreeChannel() override ABSL_LOCKS_EXCLUDED(mutex_);
  void RunHere(Work work) override { work(*own_channel_); }
  void AwaitChange(Duration at_most) override ABSL_LOCKS_EXCLUDED(mutex_);
  void Notify() override ABSL_LOCKS_EXCLUDED(mutex_);
  bool Finish(Duration at_most) override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Run(ExchangeChannel& channel) ABSL_LOCKS_EXCLUDED(mutex_);

  const std::vector<std::unique_ptr<ExchangeChannel>> channels_;
  const std::unique_ptr<ExchangeChannel> own_channel_;  // of RunHere
  Mutex mutex_;
  CondVar wake_;                                     // the channels
  CondVar changed_;                                  // the training thread
  std::deque<Work> posted_ ABSL_GUARDED_BY(mutex_);  // not yet taken; never more than channels are free
  size_t free_ ABSL_GUARDED_BY(mutex_);
  bool notified_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Thread> threads_;  // last: they use everything above
};

}  // namespace atl

#endif  // ATOLL_CLIENT_SYNC_EXCHANGE_RUNNER_H_
