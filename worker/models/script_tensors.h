#ifndef ATOLL_WORKER_MODELS_SCRIPT_TENSORS_H_
#define ATOLL_WORKER_MODELS_SCRIPT_TENSORS_H_

#include <torch/script.h>

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace atl {

/// A tensor of a module and the place where it is: "mixer._flat_weights[0]".
struct ScriptTensor {
  std::string name;
  torch::Tensor values;
};

/// The parameters that the module trains, each tensor once under its first name, in the module's order.
std::vector<ScriptTensor> TrainedTensors(const torch::jit::Module& module);

/// Whether a change of one trained parameter changes that parameter only, wherever the module holds it: in
/// attributes, lists, tuples, dictionaries and submodules. That is so if every place holds the same tensor.
/// InvalidArgument names two tensors that share memory, or a parameter that repeats its values. The module is
/// in host memory: another device gives each tensor memory of its own.
absl::Status CheckTrainedMemory(const torch::jit::Module& module);

}  // namespace atl

#endif  // ATOLL_WORKER_MODELS_SCRIPT_TENSORS_H_
