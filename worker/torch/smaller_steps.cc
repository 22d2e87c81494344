#include "worker/torch/smaller_steps.h"

#include "absl/strings/str_format.h"

namespace atl {

std::string SmallerSteps(const InnerOptions& inner, bool encodes_there) {
  std::string remedies;
  if (encodes_there) remedies = "start this worker with --encode-on-cpu; or ";
  if (inner.activations == Activations::kKept)
    remedies += "order `atollctl config set inner.recompute_activations=true`; or ";
  if (inner.batch == 1) return remedies + "use a device with more memory, or a smaller model or context";
  // The smallest divisor: a step has the same tokens then.
  uint32_t parts = 2;
  while (inner.batch % parts != 0) ++parts;
  return absl::StrFormat(
      "%sgive inner.batch: %d and inner.accumulation: %d in the run's file, which is the same step in less "
      "memory, and start the coordinator again",
      remedies, inner.batch / parts, inner.accumulation * parts);
}

}  // namespace atl
