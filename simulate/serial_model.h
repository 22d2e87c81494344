#ifndef ATOLL_SIMULATE_SERIAL_MODEL_H_
#define ATOLL_SIMULATE_SERIAL_MODEL_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/codec.h"
#include "core/contribution.h"
#include "core/run_options.h"

namespace atl {

/// The outer step of docs/reference/outer_step.md, written a second time: one value after the other, in one loop, with the mean,
/// and nesterov or delayed_nesterov. It decides from what was accepted what a round must have made, and compares the
/// hashes. Not thread-safe.
class SerialModel {
 public:
  /// `delta`: the codec of differences, as the run publishes them (docs/reference/outer_step.md, core/delta.h); none: a version
  /// is published as it is.
  SerialModel(MergeWeighting weighting, std::optional<CodecKind> delta) : weighting_(weighting), delta_(delta) {}

  void Seed(FragmentId fragment, std::vector<float> theta);
  /// A round, with the payloads of its contributions by key. Makes the next version. FailedPrecondition: it is not
  /// what the record says.
  absl::Status Apply(const RoundRecord& record, const std::map<ContributionKey, std::string>& payloads);

 private:
  struct Fragment {
    std::vector<float> theta;
    std::vector<std::vector<float>> state;
    std::vector<float> published;
    uint64_t steps = 0;
  };

  absl::Status CheckWeights(const RoundRecord& record) const;
  static void Step(const OuterOptions& outer, const std::vector<float>& mean, Fragment& fragment);
  void Publish(Fragment& fragment) const;

  const MergeWeighting weighting_;
  const std::optional<CodecKind> delta_;
  std::map<FragmentId, Fragment> fragments_;
};

}  // namespace atl

#endif  // ATOLL_SIMULATE_SERIAL_MODEL_H_
