#ifndef ATOLL_SERVER_ADMIN_PARAMETER_READER_H_
#define ATOLL_SERVER_ADMIN_PARAMETER_READER_H_

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/admin/admin_control.h"
#include "server/coordinator_context.h"
#include "storage/run_store.h"

namespace atl {

/// Reads the tensors of a stored version or of a checkpoint, window by window, while rounds go on. It takes
/// no lock of the rounds. A shard serves one window at a time, so a version that is being stored waits for
/// milliseconds. Memory: one window for each caller.
///
/// A checkpoint whose newest version was not stored when it was made is replayed first. That takes the
/// memory of one recovered fragment, which must be free below the process's limit.
///
/// Thread-safe; calls block on the disk and on the sink.
class ParameterReader {
 public:
  /// Readers at the same time: each holds a thread that operators' calls need, too.
  static constexpr int kMaxReaders = 2;

  /// `context` outlives it.
  explicit ParameterReader(const CoordinatorContext& context) : context_(context) {}

  /// AdminControl::ReadParameters.
  absl::Status Read(const ReadParametersCall& call, ParameterSink& sink);

 private:
  absl::Status ReadVersion(const ReadParametersCall& call, ParameterSink& sink);
  absl::Status ReadCheckpoint(const ReadParametersCall& call, ParameterSink& sink);
  absl::StatusOr<bool> SendOfCheckpoint(OpenedCheckpoint& opened, const FragmentLayout& layout,
                                        uint32_t vectors, ParameterSink& sink);
  absl::StatusOr<bool> SendReplayed(OpenedCheckpoint& opened, const FragmentLayout& layout, uint32_t vectors,
                                    ParameterSink& sink);
  /// Waits some seconds for a version that is about to be stored.
  absl::StatusOr<std::vector<Version>> AwaitStored(std::optional<Version> asked);
  absl::StatusOr<std::vector<Version>> Choose(const std::vector<Version>& heads,
                                              std::optional<Version> asked);

  const CoordinatorContext& context_;
  std::atomic<int> readers_{0};
  std::atomic<int> replays_{0};  // each has the memory of a recovery
};

}  // namespace atl

#endif  // ATOLL_SERVER_ADMIN_PARAMETER_READER_H_
