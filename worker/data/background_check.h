#ifndef ATOLL_WORKER_DATA_BACKGROUND_CHECK_H_
#define ATOLL_WORKER_DATA_BACKGROUND_CHECK_H_

#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "common/thread.h"
#include "worker/data/training_data.h"

namespace atl {

/// Compares the digests of all token files on a thread of its own while a run trains, at low priority:
/// Dataset::Open checks sizes and vocabulary only, and reading terabytes first would delay a worker for
/// hours. Then it looks every `look_every` whether a file was written to, and compares again. Thread-safe.
class BackgroundCheck {
 public:
  explicit BackgroundCheck(std::shared_ptr<const TrainingData> data, Duration look_every = Seconds(10));
  /// Ends the check; waits for the piece that is being read.
  ~BackgroundCheck();
  BackgroundCheck(const BackgroundCheck&) = delete;
  BackgroundCheck& operator=(const BackgroundCheck&) = delete;

  /// OK until a file is found that differs; then the error of TrainingData::VerifyContents, which names it.
  absl::Status status() const;
  /// Waits for the end of the first comparison.
  absl::Status Wait();

 private:
  void Run();
  bool GoOn() const;
  /// Waits until a file is written to after `modified_ns`; false when the check is to end.
  bool WaitForChange(int64_t modified_ns);

  const std::shared_ptr<const TrainingData> data_;
  const Duration look_every_;
  mutable Mutex mutex_;
  CondVar changed_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  Thread thread_;  // declared last, because it uses everything above
};

}  // namespace atl

#endif  // ATOLL_WORKER_DATA_BACKGROUND_CHECK_H_
