#ifndef ATOLL_SERVER_ADMIN_METRIC_EXPORT_H_
#define ATOLL_SERVER_ADMIN_METRIC_EXPORT_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/run_options.h"
#include "server/admin/admin_control.h"
#include "storage/run_store.h"

namespace atl {

/// Values that were measured, ascending in time, one batch (of one moment) after another.
class MetricSource {
 public:
  virtual ~MetricSource() = default;
  /// Empty: there are no more.
  virtual absl::StatusOr<std::vector<MetricPointView>> Next() = 0;
};

/// The configurations that rounds were opened with: for the learning rate that was in force then.
struct RecordedRuns {
  std::map<uint64_t, RunOptions> by_version;
  RunOptions newest;  // in the place of one that cannot be read

  const RunOptions& At(uint64_t version) const {
    const auto it = by_version.find(version);
    return it == by_version.end() ? newest : it->second;
  }
};

/// What the record of every round of a fragment holds: the round's values, and those of each contribution.
/// Reads one record at a time.
class RoundSource final : public MetricSource {
 public:
  RoundSource(RunStore* store, FragmentId fragment, Version head, RecordedRuns runs)
      : store_(store), fragment_(fragment), head_(head), runs_(std::move(runs)) {}
  absl::StatusOr<std::vector<MetricPointView>> Next() override;

 private:
  RunStore* const store_;
  const FragmentId fragment_;
  const Version head_;
  const RecordedRuns runs_;
  Version last_;
};

/// How long rounds were open and took to commit, from the event log. An event may have been lost with power.
class DurationSource final : public MetricSource {
 public:
  explicit DurationSource(RunStore* store) : store_(store) {}
  absl::StatusOr<std::vector<MetricPointView>> Next() override;

 private:
  RunStore* const store_;
  uint64_t last_sequence_ = 0;
  std::deque<EventEntry> page_;
};

/// The validation loss of every version that was evaluated, and "task/NAME/METRIC" for the scores of tasks.
class EvaluationSource final : public MetricSource {
 public:
  EvaluationSource(RunStore* store, std::vector<EvaluationView> evaluations);
  absl::StatusOr<std::vector<MetricPointView>> Next() override;

 private:
  RunStore* const store_;
  std::deque<EvaluationView> evaluations_;  // by time
};

/// All points of all sources in order of time; what is of one moment, in the order of the sources. OK also
/// when the sink ended it.
absl::Status ExportInOrder(std::vector<std::unique_ptr<MetricSource>> sources,
                           const AdminControl::MetricSink& sink);

}  // namespace atl

#endif  // ATOLL_SERVER_ADMIN_METRIC_EXPORT_H_
