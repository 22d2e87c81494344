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

/// What a run allows its workers (core/run_options.h).
struct RunRules {
  uint64_t tokens_per_step = 0;
  uint32_t most_steps = 0;    // of one contribution
  uint64_t total_tokens = 0;  // the run's budget
};

/// What must hold in every run, whatever happens to its programs, checked after each event. It outlives them: what it
/// was told is true, and what a program says later must fit. The first violation stays. Used by fibers of one
/// scheduler only.
class RunChecker {
 public:
  RunChecker(const RunRules& rules, SerialModel model) : rules_(rules), model_(std::move(model)) {}

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
  /// Every fragment has had the tokens of the budget: the run is at its end.
  bool budget_spent() const;
  /// Order-dependent hash of all commits: equal runs have equal ones.
  uint64_t fingerprint() const { return fingerprint_; }
  void Mix(uint64_t value);

 private:
  using Key = std::pair<WorkerName, Version>;  // a contribution of one fragment
  struct Fragment {
    Version head;
    uint64_t elements = 0;
    uint64_t tokens = 0;           // committed
    uint32_t after_budget = 0;     // versions
    std::map<ContributionKey, Contribution> open;  // accepted, and in no round yet
    std::map<ContributionKey, std::string> payloads;
    std::map<Key, uint32_t> counted;  // with the payload's crc
  };

  absl::Status CheckAllowed(const Contribution& contribution, const std::string& payload) const;
  absl::Status CheckBudget(const RoundRecord& record, Fragment& fragment) const;

  const RunRules rules_;
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
