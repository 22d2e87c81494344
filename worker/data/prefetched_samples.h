#ifndef ATOLL_WORKER_DATA_PREFETCHED_SAMPLES_H_
#define ATOLL_WORKER_DATA_PREFETCHED_SAMPLES_H_

#include <cstdint>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "common/mutex.h"
#include "common/thread.h"
#include "worker/data/batches.h"

namespace atl {

/// Training samples, of which the next batch is read on a thread while the caller trains. The batches are
/// those of TrainingSamples: a batch that was read ahead for another position is dropped. Read is called by
/// one thread at a time.
class PrefetchedSamples {
 public:
  explicit PrefetchedSamples(TrainingSamples samples);
  ~PrefetchedSamples();
  PrefetchedSamples(const PrefetchedSamples&) = delete;
  PrefetchedSamples& operator=(const PrefetchedSamples&) = delete;

  /// As TrainingSamples::Read. Begins to read the batch at `next`, or behind this one.
  absl::Status Read(uint64_t position, uint32_t sequences, Batch& batch,
                    std::optional<uint64_t> next = std::nullopt);

 private:
  struct Wanted {
    uint64_t position = 0;
    uint32_t sequences = 0;
    friend bool operator==(const Wanted&, const Wanted&) = default;
  };
  void Run();

  Mutex mutex_;
  CondVar changed_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<Wanted> wanted_ ABSL_GUARDED_BY(mutex_);  // not begun
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<Wanted> ready_ ABSL_GUARDED_BY(mutex_);  // batch_ and status_ are of it
  TrainingSamples samples_;                              // the thread's
  Batch batch_;                                          // the thread's while it reads
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  Thread thread_;  // declared last, because it uses everything above
};

}  // namespace atl

#endif  // ATOLL_WORKER_DATA_PREFETCHED_SAMPLES_H_
