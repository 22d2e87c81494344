#ifndef ATOLL_TESTS_WORKER_MODELS_TRANSFORMERS_ORACLE_H_
#define ATOLL_TESTS_WORKER_MODELS_TRANSFORMERS_ORACLE_H_

#include <nlohmann/json.hpp>
#include <string>

#include "worker/torch/libtorch.h"

// Hugging Face's transformers, in the Python of scripts/interop.sh.

namespace atl::testing {

/// Why it cannot be asked on this machine; empty: it can.
std::string TransformersMissing();

/// Runs tests/reference/SCRIPT with the options, and returns its result. A failure of it fails the test.
nlohmann::json AskTransformers(const std::string& script, const nlohmann::json& options,
                               const std::string& folder);

/// The values of a tensor as they lie in memory, and float32 values back.
void WriteTensor(const std::string& path, const torch::Tensor& tensor);
torch::Tensor ReadFloats(const std::string& path);

}  // namespace atl::testing

#endif  // ATOLL_TESTS_WORKER_MODELS_TRANSFORMERS_ORACLE_H_
