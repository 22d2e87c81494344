#include "core/model_check.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/human.h"
#include "common/status.h"
#include "core/codec.h"
#include "core/external_shape.h"
#include "core/manifest.h"
#include "core/model_shape.h"

namespace atl {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

/// Whole tensors do not divide so evenly, but nobody knows them yet.
absl::StatusOr<std::vector<FragmentLayout>> DivideEvenly(const ExternalOptions& model, uint32_t fragments) {
  if (model.parameters == 0) {
    const std::string section = ExternalShape(model).section();
    return absl::FailedPreconditionError(
        absl::StrFormat("%s: the number of parameters is not known before a worker seeds the run; set "
                        "%s.parameters",
                        section, section));
  }
  const uint64_t share = (model.parameters + fragments - 1) / fragments;
  std::vector<FragmentLayout> layouts(fragments);
  for (uint32_t i = 0; i < fragments; ++i) {
    layouts[i].id = FragmentId(i);
    layouts[i].elements = (share + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment;
  }
  return layouts;
}

/// ": 8 parameters and 4 averaged values, which count too"; empty when none are averaged.
std::string AveragedPart(const Manifest& manifest) {
  uint64_t averaged = 0;
  for (const TensorSpec& tensor : manifest.tensors) averaged += tensor.averaged ? tensor.elements() : 0;
  if (averaged == 0) return "";
  return absl::StrFormat(": %s and %s, which count too", Counted(manifest.elements() - averaged, "parameter"),
                         Counted(averaged, "averaged value"));
}

}  // namespace

absl::StatusOr<std::vector<FragmentLayout>> LayOutModel(const RunOptions& run) {
  if (const ExternalOptions* external = run.model.external()) {
    return DivideEvenly(*external, run.sync.fragments);
  }
  const auto shape = ShapeOf(run.model);
  ATOLL_ASSIGN_OR_RETURN(const Manifest manifest, ManifestOf(run.model));
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

absl::Status CheckAveragedTensors(const RunOptions& run, const Manifest& manifest) {
  const TensorSpec* const averaged = manifest.FirstAveraged();
  if (averaged == nullptr || run.round.mode != RoundMode::kAsync ||
      run.outer.optimizer == OuterOptimizerKind::kDelayedNesterov) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrFormat("outer.optimizer: when round.mode is async, a model with averaged tensors such as '%s' "
                      "needs delayed_nesterov, which divides each contribution by outer.delay; or keep these "
                      "tensors local",
                      averaged->name));
}

absl::Status CheckParameters(const ModelOptions& model, const Manifest& manifest) {
  const ExternalOptions* const external = model.external();
  if (external == nullptr || external->parameters == 0 || external->parameters == manifest.elements()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrFormat("%1$s.parameters is %2$d, and the model has %3$d in %4$d tensors%5$s. Correct the "
                      "model, or %1$s.parameters",
                      ShapeOf(model)->section(), external->parameters, manifest.elements(),
                      manifest.tensors.size(), AveragedPart(manifest)));
}

absl::Status CheckModel(const RunOptions& run) {
  if (!run.model.size_known()) return absl::OkStatus();
  ATOLL_ASSIGN_OR_RETURN(const std::vector<FragmentLayout> layouts, LayOutModel(run));
  return CheckContributionBudget(run, layouts);
}

}  // namespace atl
