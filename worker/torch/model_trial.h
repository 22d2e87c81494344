#ifndef ATOLL_WORKER_TORCH_MODEL_TRIAL_H_
#define ATOLL_WORKER_TORCH_MODEL_TRIAL_H_

#include <cstdint>

#include "absl/status/status.h"
#include "worker/torch/language_model.h"
#include "worker/torch/libtorch.h"

namespace atl {

/// A model from elsewhere computes one loss, with the largest token in it, before anybody trains it: once it
/// has seeded a run, the run keeps it. InvalidArgument with what the model throws.
absl::Status TryModel(const LanguageModel& model, uint32_t context, uint32_t vocabulary,
                      const torch::Device& device);

}  // namespace atl

#endif  // ATOLL_WORKER_TORCH_MODEL_TRIAL_H_
