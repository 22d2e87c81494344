#ifndef ATOLL_SIMULATE_RUN_CHECKER_H_
#define ATOLL_SIMULATE_RUN_CHECKER_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/clock.h"
#include "core/contribution.h"
#include "simulate/serial_model.h"

namespace atl {

/// What must hold in every run, whatever happens to its programs, checked after each event. It outlives them: what it
/// was told is true, and what a program says later must fit. The first violation stays. Used by fibers of one
/// scheduler only.
class RunChecker {
 public:
  explicit RunChecker(SerialModel model) : model_(std::move(model)) {}

  // What became durable on the disk of a coordinator that lives.

  void OnSeeded(FragmentId fragment, std::vector<float> theta);
  void OnAccepted(const Contribution& contribution, std::string payload);
  void OnCommitted(const RoundRecord& record);

  // What programs were told.

  /// The coordinator's acknowledgment of a push has reached the worker.
  void OnAcknowledged(const WorkerName& worker, FragmentId fragment, Version base, uint32_t crc32c);
  void OnPulled(const WorkerName& worker, FragmentId fragment, Version version);

  /// Something that this class does not see itself.
  void Fail(const std::string& what);
  const absl::Status& status() const { return status_; }

  uint64_t committed() const { return committed_; }
  uint64_t counted() const { return counted_; }
  uint64_t acknowledged() const { return acknowledged_; }
  MonoTime last_commit() const { return last_commit_; }
  /// Order-dependent hash of all commits: equal runs have equal ones.
  uint64_t fingerprint() const { return fingerprint_; }
  void Mix(uint64_t value);

 private:
  using Key = std::pair<WorkerName, Version>;  // a contribution of one fragment
  struct Fragment {
    Version head;
    std::map<ContributionKey, Contribution> open;  // accepted, and in no round yet
    std::map<ContributionKey, std::string> payloads;
    std::map<Key, uint32_t> counted;  // with the payload's crc
  };

  SerialModel model_;
  std::map<FragmentId, Fragment> fragments_;
  std::map<std::pair<WorkerName, FragmentId>, Version> pulled_;
  absl::Status status_;
  uint64_t committed_ = 0;
  uint64_t counted_ = 0;
  uint64_t acknowledged_ = 0;
  uint64_t fingerprint_ = 0;
  MonoTime last_commit_;
};

}  // namespace atl

#endif  // ATOLL_SIMULATE_RUN_CHECKER_H_
