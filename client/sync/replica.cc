#include "client/sync/replica.h"

#include <memory>

#include "absl/strings/cord.h"
#include "client/sync/host_fragment_encoder.h"
#include "common/status.h"

namespace atl {
namespace {

constexpr char kNoMoreStepsUrl[] = "atoll.no-more-steps";

}  // namespace

absl::Status NoMoreSteps() {
  absl::Status over = absl::OutOfRangeError("the data is over");
  over.SetPayload(kNoMoreStepsUrl, absl::Cord());
  return over;
}

bool IsNoMoreSteps(const absl::Status& step) { return step.GetPayload(kNoMoreStepsUrl).has_value(); }

std::unique_ptr<FragmentEncoder> Replica::MakeEncoder(const EncoderOptions& options) {
  return std::make_unique<HostFragmentEncoder>(options);
}

absl::Status Replica::InnerSteps(std::span<const double> learning_rates,
                                 std::vector<InnerStepResult>& results) {
  for (const double learning_rate : learning_rates) {
    ATOLL_ASSIGN_OR_RETURN(const InnerStepResult result, InnerStep(learning_rate));
    results.push_back(result);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<TaskScore>> Replica::ScoreTasks(const TaskCall& /*call*/) {
  return absl::UnimplementedError("this worker's program knows no tasks");
}

}  // namespace atl
