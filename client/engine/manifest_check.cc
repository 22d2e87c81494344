#include "client/engine/manifest_check.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/sync/rejection.h"
#include "common/human.h"
#include "common/status.h"
#include "core/model_check.h"
#include "core/model_shape.h"

namespace atl {

namespace {

constexpr uint32_t kKnownFlags = ATL_TENSOR_EMBEDDING | ATL_TENSOR_AVERAGED;

/// Without these checks an older coordinator refuses the hash of the manifest and cannot say why, and this
/// one refuses the seed, which the worker would repeat.
absl::Status CheckAverages(const JoinedRun& run, const Manifest& caller) {
  const TensorSpec* const averaged = caller.FirstAveraged();
  if (averaged == nullptr) return absl::OkStatus();
  if (run.protocol_minor >= kMinorWithAveragedTensors) return CheckAveragedTensors(run.run, caller);
  return absl::FailedPreconditionError(
      absl::StrFormat("the coordinator is of an older release, which cannot average tensor '%s': upgrade it, "
                      "or keep such tensors local",
                      averaged->name));
}

}  // namespace

uint32_t FlagsOf(const TensorSpec& tensor) {
  return (tensor.embedding ? uint32_t{ATL_TENSOR_EMBEDDING} : 0U) |
         (tensor.averaged ? uint32_t{ATL_TENSOR_AVERAGED} : 0U);
}

absl::StatusOr<Manifest> CallerManifest(const std::vector<ipc::Tensor>& tensors,
                                        const std::string& base_fingerprint) {
  Manifest manifest;
  for (const ipc::Tensor& tensor : tensors) {
    if ((tensor.flags & ~kKnownFlags) != 0) {
      return absl::InvalidArgumentError(
          absl::StrFormat("tensor '%s': flags %#x are unknown to this release", tensor.name, tensor.flags));
    }
    manifest.tensors.push_back({.name = tensor.name,
                                .shape = tensor.shape,
                                .embedding = (tensor.flags & ATL_TENSOR_EMBEDDING) != 0,
                                .averaged = (tensor.flags & ATL_TENSOR_AVERAGED) != 0});
  }
  manifest.base_fingerprint = base_fingerprint;
  if (manifest.tensors.empty())
    return absl::InvalidArgumentError("the model has no tensors; give at least one");
  ATOLL_RETURN_IF_ERROR(ValidateManifest(manifest));
  return manifest;
}

absl::Status CheckMemory(const Manifest& caller, const MemoryLimit& limit) {
  // The values that are shared with the caller, and the base of the round.
  constexpr uint64_t kBytesPerElement = 8;
  const uint64_t elements = caller.elements();
  if (!limit.known || elements <= limit.bytes / kBytesPerElement) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrFormat(
      "a model of %d values takes at least %s beside the loop's own memory, and this machine "
      "has %s (%s): give a smaller model, or freeze parameters that need no training",
      elements, HumanBytes(elements * kBytesPerElement), HumanBytes(limit.bytes), limit.source));
}

absl::Status CheckAgainstRun(const JoinedRun& run, const Manifest& caller) {
  ATOLL_RETURN_IF_ERROR(CheckAverages(run, caller));
  std::optional<Manifest> theirs = run.manifest;
  if (!theirs.has_value()) theirs = ShapeOf(run.run.model)->MakeManifest();
  // Nobody has brought a model yet: only the number of its values may be known.
  const std::string difference = theirs.has_value()
                                     ? DifferenceFromRun(*theirs, caller)
                                     : std::string(CheckParameters(run.run.model, caller).message());
  if (difference.empty()) return absl::OkStatus();
  const std::string ours =
      run.run.model.external() != nullptr
          ? ""
          : absl::StrCat(
                ". The run's configuration describes its model (`", ShapeOf(run.run.model)->section(),
                "`): a loop of your own needs the same tensors, under the names of transformers; a run for "
                "models of your own has `model: external`");
  return WithRejection(
      absl::InvalidArgumentError(absl::StrCat("the model is not that of the run: ", difference, ours)),
      RejectionReason::kManifestMismatch);
}

}  // namespace atl
