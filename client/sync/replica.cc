#include "client/sync/replica.h"

#include <memory>

#include "absl/strings/cord.h"
#include "client/sync/host_fragment_encoder.h"

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

absl::StatusOr<std::vector<TaskScore>> Replica::ScoreTasks(const TaskCall& /*call*/) {
  return absl::UnimplementedError("this worker's program knows no tasks");
}

}  // namespace atl
