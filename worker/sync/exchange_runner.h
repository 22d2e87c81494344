#ifndef ATOLL_WORKER_SYNC_EXCHANGE_RUNNER_H_
#define ATOLL_WORKER_SYNC_EXCHANGE_RUNNER_H_

#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "common/mutex.h"
#include "worker/sync/exchange_lane.h"

namespace atoll {

/// Runs exchanges beside the training thread, which is the only one that calls it.
class ExchangeRunner {
 public:
  using Work = std::function<void(ExchangeLane&)>;
  virtual ~ExchangeRunner() = default;

  /// False, and nothing happens, when all lanes are busy.
  virtual bool Start(Work work) = 0;
  virtual bool HasFreeLane() = 0;
  /// On the calling thread, over a lane kept for it.
  virtual void RunHere(Work work) = 0;
  /// Returns when something has happened to an exchange (News), or after `at_most`.
  virtual void AwaitNews(Duration at_most) = 0;
  /// From any thread: there is something that the training thread may wait for.
  virtual void News() = 0;
  /// Returns true when no exchange is under way any more; false after `at_most`.
  virtual bool Finish(Duration at_most) = 0;
};

/// A thread per lane.
class ExchangeThreads final : public ExchangeRunner {
 public:
  ExchangeThreads(std::vector<std::unique_ptr<ExchangeLane>> lanes, std::unique_ptr<ExchangeLane> own_lane);
  ~ExchangeThreads() override;

  bool Start(Work work) override ABSL_LOCKS_EXCLUDED(mutex_);
  bool HasFreeLane() override ABSL_LOCKS_EXCLUDED(mutex_);
  void RunHere(Work work) override { work(*own_lane_); }
  void AwaitNews(Duration at_most) override ABSL_LOCKS_EXCLUDED(mutex_);
  void News() override ABSL_LOCKS_EXCLUDED(mutex_);
  bool Finish(Duration at_most) override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Run(ExchangeLane& lane) ABSL_LOCKS_EXCLUDED(mutex_);

  const std::vector<std::unique_ptr<ExchangeLane>> lanes_;
  const std::unique_ptr<ExchangeLane> own_lane_;  // of RunHere
  Mutex mutex_;
  CondVar wake_;                                     // the lanes
  CondVar changed_;                                  // the training thread
  std::deque<Work> posted_ ABSL_GUARDED_BY(mutex_);  // not yet taken; never more than lanes are free
  size_t free_ ABSL_GUARDED_BY(mutex_);
  bool news_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;  // last: they use everything above
};

}  // namespace atoll

#endif  // ATOLL_WORKER_SYNC_EXCHANGE_RUNNER_H_
