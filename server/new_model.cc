#include "server/new_model.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/human.h"
#include "common/memory_limit.h"
#include "common/status.h"
#include "core/model_check.h"
#include "core/model_shape.h"

namespace atl {

absl::Status CheckModelMemory(std::span<const FragmentLayout> layouts) {
  // Parameters, those of the next version, one vector of state: docs/internals/architecture.md, "Memory of
  // the coordinator".
  constexpr uint64_t kBytesPerElement = 12;
  const MemoryLimit limit = ReadMemoryLimit();
  uint64_t elements = 0;
  for (const FragmentLayout& layout : layouts) elements += layout.elements;
  if (!limit.known || elements <= limit.bytes / kBytesPerElement) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrFormat(
      "a model of %d values takes at least %s in the coordinator, which has %s of memory (%s); "
      "`atollctl plan` shows what it needs",
      elements, HumanBytes(elements * kBytesPerElement), HumanBytes(limit.bytes), limit.source));
}

absl::Status CheckNewModel(const RunOptions& run) {
  if (!run.model.size_known()) return absl::OkStatus();
  ATOLL_ASSIGN_OR_RETURN(const std::vector<FragmentLayout> layouts, LayOutModel(run));
  ATOLL_RETURN_IF_ERROR(CheckContributionBudget(run, layouts));
  const absl::Status fits = CheckModelMemory(layouts);
  return fits.ok()
             ? fits
             : absl::InvalidArgumentError(absl::StrCat(ShapeOf(run.model)->section(), ": ", fits.message()));
}

absl::StatusOr<std::vector<FragmentLayout>> LayOutFirstModel(const RunOptions& run, uint32_t fragments,
                                                             const Manifest& manifest) {
  ATOLL_RETURN_IF_ERROR(ValidateManifest(manifest));
  ATOLL_RETURN_IF_ERROR(CheckParameters(run.model, manifest));
  ATOLL_ASSIGN_OR_RETURN(std::vector<FragmentLayout> layouts,
                         PlanFragments(manifest, fragments, run.sync.pattern));
  ATOLL_RETURN_IF_ERROR(CheckContributionBudget(run, layouts));
  ATOLL_RETURN_IF_ERROR(CheckAveragedTensors(run, manifest));
  ATOLL_RETURN_IF_ERROR(CheckModelMemory(layouts));
  return layouts;
}

}  // namespace atl
