#include "core/model_check.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/human.h"
#include "common/status.h"
#include "core/codec.h"
#include "core/manifest.h"
#include "core/model_shape.h"

namespace atl {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

}  // namespace

absl::StatusOr<std::vector<FragmentLayout>> LayOutModel(const RunOptions& run) {
  const auto shape = ShapeOf(run.model);
  const Manifest manifest = shape->MakeManifest();
  const absl::Status valid = ValidateManifest(manifest);
  if (!valid.ok()) return absl::InvalidArgumentError(absl::StrCat(shape->section(), ": ", valid.message()));
  auto layouts = PlanFragments(manifest, run.sync.fragments, run.sync.pattern);
  if (!layouts.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("sync.fragments: ", layouts.status().message()));
  }
  return layouts;
}

absl::Status CheckContributionBudget(const RunOptions& run, std::span<const FragmentLayout> layouts) {
  for (const FragmentLayout& layout : layouts) {
    const uint64_t payload = CodecFor(run.push_codec).EncodedSize(layout.elements);
    if (payload <= run.contribution_budget_bytes) continue;
    return absl::InvalidArgumentError(
        absl::StrFormat("limits.contribution_budget_mib: %s cannot hold a contribution to fragment %d, which "
                        "needs %s; allowed: at least %d",
                        HumanBytes(run.contribution_budget_bytes), layout.id.value(), HumanBytes(payload),
                        (payload + kMiB - 1) / kMiB));
  }
  return absl::OkStatus();
}

absl::Status CheckModel(const RunOptions& run) {
  ATOLL_ASSIGN_OR_RETURN(const std::vector<FragmentLayout> layouts, LayOutModel(run));
  return CheckContributionBudget(run, layouts);
}

}  // namespace atl
