#include "worker/torch/model_trial.h"

#include <vector>

#include "worker/torch/batch_tensors.h"
#include "worker/torch/torch_status.h"

namespace atl {

absl::Status TryModel(const LanguageModel& model, uint32_t context, uint32_t vocabulary,
                      const torch::Device& device) {
  std::vector<int64_t> tokens(context, 0);
  tokens.back() = int64_t{vocabulary} - 1;
  const absl::Status tried = CatchTorch("trying the model", [&] {
    const torch::Tensor row = TokensOnDevice(tokens, 1, device);
    model.Loss(row, row, ModelMode::kTraining);
    return absl::OkStatus();
  });
  return absl::IsInternal(tried) ? absl::InvalidArgumentError(tried.message()) : tried;
}

}  // namespace atl
