#include "server/members/run_model.h"

#include "absl/strings/str_format.h"
#include "server/rejection.h"

namespace atl {

absl::Status RejectModel(const WorkerName& worker, const RunModel& run, const Manifest& other) {
  return RejectModel(worker, DifferenceFromRun(run.manifest(), other));
}

absl::Status RejectModel(const WorkerName& worker, std::string_view difference) {
  return Reject(RejectionReason::kManifestMismatch,
                absl::StrFormat("the model of worker '%s' is not the run's: %s", worker, difference));
}

}  // namespace atl
