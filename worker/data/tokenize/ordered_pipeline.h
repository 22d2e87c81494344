#ifndef ATOLL_WORKER_DATA_TOKENIZE_ORDERED_PIPELINE_H_
#define ATOLL_WORKER_DATA_TOKENIZE_ORDERED_PIPELINE_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/mutex.h"
#include "common/thread.h"

namespace atl {

/// Reads items on one thread, works on them on several, and gives the results in the order of the items. A
/// bounded number of items is under way. The functions must not throw. Next is called by one thread.
template <typename Item, typename Result>
class OrderedPipeline {
 public:
  using Read = std::function<std::optional<Item>()>;  // nullopt: the end
  using Work = std::function<Result(Item)>;

  /// One working thread for each of `workers`.
  OrderedPipeline(Read read, std::vector<Work> workers)
      : read_(std::move(read)), workers_(std::move(workers)), limit_(2 * workers_.size() + 2) {
    threads_.emplace_back([this] { ReadItems(); });
    for (const Work& work : workers_) threads_.emplace_back([this, &work] { DoWork(work); });
  }
  /// Drops what is under way. Waits for the item that is being read.
  ~OrderedPipeline() {
    {
      const MutexLock lock(&mutex_);
      stopped_ = true;
      changed_.NotifyAll();
    }
    for (Thread& thread : threads_) thread.Join();
  }
  OrderedPipeline(const OrderedPipeline&) = delete;
  OrderedPipeline& operator=(const OrderedPipeline&) = delete;

  /// The result of the next item; nullopt after the last one.
  std::optional<Result> Next() {
    std::unique_ptr<Slot> slot;
    {
      const MutexLock lock(&mutex_);
      while (slots_.empty() ? !ended_ : !slots_.front()->result) changed_.Wait(&mutex_);
      if (slots_.empty()) return std::nullopt;
      slot = std::move(slots_.front());
      slots_.pop_front();
      --taken_;
      changed_.NotifyAll();
    }
    return std::move(slot->result);
  }

 private:
  struct Slot {
    std::optional<Item> item;
    std::optional<Result> result;
  };

  void ReadItems() {
    SetThreadName("read-text");
    while (true) {
      {
        const MutexLock lock(&mutex_);
        while (!stopped_ && slots_.size() >= limit_) changed_.Wait(&mutex_);
        if (stopped_) return;
      }
      std::optional<Item> item = read_();
      const MutexLock lock(&mutex_);
      changed_.NotifyAll();
      if (!item) {
        ended_ = true;
        return;
      }
      slots_.push_back(std::make_unique<Slot>());
      slots_.back()->item = std::move(item);
    }
  }

  void DoWork(const Work& work) {
    SetThreadName("tokenize");
    while (true) {
      Slot* slot = nullptr;
      {
        const MutexLock lock(&mutex_);
        while (!stopped_ && taken_ == slots_.size() && !ended_) changed_.Wait(&mutex_);
        if (stopped_ || taken_ == slots_.size()) return;
        slot = slots_[taken_++].get();
      }
      Result result = work(*std::exchange(slot->item, std::nullopt));
      const MutexLock lock(&mutex_);
      slot->result = std::move(result);
      changed_.NotifyAll();
    }
  }

  const Read read_;
  const std::vector<Work> workers_;
  const size_t limit_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<std::unique_ptr<Slot>> slots_ ABSL_GUARDED_BY(mutex_);  // in the order of the items
  size_t taken_ ABSL_GUARDED_BY(mutex_) = 0;  // of slots_, from the front: those that a thread has begun
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Thread> threads_;
};

}  // namespace atl

#endif  // ATOLL_WORKER_DATA_TOKENIZE_ORDERED_PIPELINE_H_
