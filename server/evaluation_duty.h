#ifndef ATOLL_SERVER_EVALUATION_DUTY_H_
#define ATOLL_SERVER_EVALUATION_DUTY_H_

#include <cstdint>
#include <map>
#include <set>
#include <span>

#include "common/ids.h"
#include "core/membership.h"
#include "core/run_options.h"

namespace atoll {

/// Which published versions are evaluated, and by whom: version 0, every `every`-th, and the last one. With
/// EvaluatedBy::kWorker one live trainer has the duty for a version, the first in the order of partitions,
/// and keeps it while it lives; with kEvaluator every evaluator that pulls the version has it. Best effort:
/// no round waits for a report. Pure state, not thread-safe.
class EvaluationDuty {
 public:
  EvaluationDuty(EvaluatedBy by, uint32_t every) : by_(by), every_(every) {}
  /// For duties that nobody has yet.
  void Configure(EvaluatedBy by, uint32_t every) {
    by_ = by;
    every_ = every;
  }

  /// `live`: the live trainers, in order of duty. `last`: no version will follow.
  bool Assign(const WorkerName& worker, WorkerRole role, Version version, bool last,
              std::span<const WorkerName> live);
  /// A report for this version came.
  void Reported(Version version);
  bool HasReport(Version version) const { return reported_.contains(version); }
  /// Who has the duty; empty: nobody yet.
  WorkerName Holder(Version version) const;

 private:
  bool Due(Version version, bool last) const;

  EvaluatedBy by_;
  uint32_t every_;
  std::set<Version> reported_;
  std::map<Version, WorkerName> holders_;
};

}  // namespace atoll

#endif  // ATOLL_SERVER_EVALUATION_DUTY_H_
