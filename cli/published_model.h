#ifndef ATOLL_CLI_PUBLISHED_MODEL_H_
#define ATOLL_CLI_PUBLISHED_MODEL_H_

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/observer_client.h"
#include "common/clock.h"
#include "core/fragment_plan.h"
#include "core/manifest.h"
#include "core/run_options.h"

namespace atl {

/// A vector of the outer optimizer, such as its momentum.
struct OuterVector {
  std::string name;
  std::vector<std::vector<float>> fragments;  // parallel to PublishedModel::layouts
};

/// A run's published parameters, and what they are of.
struct PublishedModel {
  Manifest manifest;
  RunOptions options;
  std::vector<FragmentLayout> layouts;
  std::vector<PulledFragment> fragments;  // parallel to layouts, at least one
  std::string run_id;
  uint64_t epoch = 0;
  std::vector<OuterVector> outer_state = {};
};

/// Pulls all of it. FailedPrecondition if the run has no parameters yet. `check` may reject the run before
/// anything is pulled. `stall` as in PullLimits.
absl::StatusOr<PublishedModel> PullPublished(ObserverClient& client, Duration stall,
                                             const std::function<absl::Status(const RunOptions&)>& check);

/// The same through the admin port: of the newest version, of another stored version, or of a checkpoint.
absl::StatusOr<PublishedModel> ReadStored(AdminClient& client, const ParametersQuery& query,
                                          const std::function<absl::Status(const RunOptions&)>& check);

/// The tensors in the manifest's order, without padding. Point into the model.
std::vector<std::span<const float>> TensorsOf(const PublishedModel& model);
/// The same part of a vector of the optimizer for each tensor.
std::vector<std::span<const float>> TensorsOf(const PublishedModel& model, const OuterVector& vector);

/// Which version a file holds, as its metadata: "atoll_version", and in an overlapped run that of each
/// fragment.
std::map<std::string, std::string> VersionMetadata(const PublishedModel& model);

}  // namespace atl

#endif  // ATOLL_CLI_PUBLISHED_MODEL_H_
