#ifndef ATOLL_WORKER_DATA_BACKGROUND_CHECK_H_
#define ATOLL_WORKER_DATA_BACKGROUND_CHECK_H_

#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "common/mutex.h"
#include "common/thread.h"
#include "worker/data/training_data.h"

namespace atl {

/// Compares the digests of all token files on a thread of its own while a run trains, at low priority:
/// Dataset::Open checks sizes and vocabulary only, and reading terabytes first would delay a worker for
/// hours. Thread-safe.
class BackgroundCheck {
 public:
  explicit BackgroundCheck(std::shared_ptr<const TrainingData> data);
  /// Ends the check; waits for the piece that is being read.
  ~BackgroundCheck();
  BackgroundCheck(const BackgroundCheck&) = delete;
  BackgroundCheck& operator=(const BackgroundCheck&) = delete;

  /// OK until a file is found that differs; then the error of TrainingData::VerifyContents, which names it.
  absl::Status status() const;
  /// Waits for the end of the check.
  absl::Status Wait();

 private:
  void Run();
  bool GoOn() const;

  const std::shared_ptr<const TrainingData> data_;
  mutable Mutex mutex_;
  CondVar changed_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  Thread thread_;  // declared last, because it uses everything above
};

}  // namespace atl

#endif  // ATOLL_WORKER_DATA_BACKGROUND_CHECK_H_
