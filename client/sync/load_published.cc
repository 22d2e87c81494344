#include "client/sync/load_published.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include "common/status.h"
#include "core/codec.h"
#include "core/fragment_plan.h"
#include "core/one_version.h"

namespace atl {
namespace {

// For a version that other fragments have already: it is on its way.
constexpr Duration kNewerWait = Seconds(2);

/// Pulls one fragment at a time into the replica.
class Loading {
 public:
  Loading(CoordinatorConnection& connection, const JoinedRun& info, Replica& replica)
      : connection_(connection), info_(info), replica_(replica), codec_(CodecFor(info.run.pull_codec)) {}

  /// The head, or a version above `after`; none: there is no such version yet.
  absl::StatusOr<std::optional<Version>> Load(const FragmentLayout& layout, std::optional<Version> after) {
    payload_.resize(codec_.EncodedSize(layout.elements));
    PullRequest request;
    request.call.fragment = layout.id;
    request.call.after = after;
    if (after.has_value()) request.call.wait = kNewerWait;
    request.codec = info_.run.pull_codec;
    request.elements = layout.elements;
    request.call.zstd = info_.run.zstd;
    ATOLL_ASSIGN_OR_RETURN(const PulledVersion pulled, connection_.Pull(info_.member, request, payload_));
    if (pulled.outcome != PullOutcome::kParameters) return std::nullopt;
    values_.resize(layout.elements);
    codec_.DecodeRange(payload_, layout.elements, 0, values_);
    ATOLL_RETURN_IF_ERROR(replica_.WriteFragment(layout, values_));
    return pulled.version;
  }

 private:
  CoordinatorConnection& connection_;
  const JoinedRun& info_;
  Replica& replica_;
  const Codec& codec_;
  std::vector<std::byte> payload_;
  std::vector<float> values_;
};

}  // namespace

absl::StatusOr<Version> LoadPublished(CoordinatorConnection& connection, const JoinedRun& info,
                                      Replica& replica) {
  if (info.fragments.empty()) {
    return absl::FailedPreconditionError(
        "the run has no parameters yet: no worker has seeded it; start a worker first");
  }
  ATOLL_ASSIGN_OR_RETURN(
      const auto layouts,
      PlanFragments(replica.manifest(), static_cast<uint32_t>(info.fragments.size()), info.run.sync.pattern));
  Loading loading(connection, info, replica);
  std::vector<Version> versions;
  for (const FragmentLayout& layout : layouts) {
    ATOLL_ASSIGN_OR_RETURN(const std::optional<Version> version, loading.Load(layout, std::nullopt));
    if (!version.has_value()) {
      return absl::UnavailableError("the coordinator has no parameters to give now; try again");
    }
    versions.push_back(*version);
  }
  if (info.run.sync.mode != SyncMode::kOverlapped) {
    ATOLL_RETURN_IF_ERROR(PullUntilOneVersion(
        versions, [&](size_t i, Version after) { return loading.Load(layouts[i], after); }));
  }
  return *std::ranges::min_element(versions);
}

}  // namespace atl
