#ifndef ATOLL_TESTS_WORKER_TORCH_TINY_RUN_H_
#define ATOLL_TESTS_WORKER_TORCH_TINY_RUN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/fragment_plan.h"
#include "worker/torch/torch_replica.h"

namespace atl::testing {

/// A run small enough for a unit test: 2 layers, 2 heads, width 32, context 16, bytes.
RunOptions TinyRun();

/// Writes a tokenised text (repeating English-like lines) into a fresh folder under the test's temporary one.
std::string TinyDataset(const std::string& name, size_t bytes = 20000);

TorchReplicaOptions TinyReplica(const std::string& dataset_folder);

/// The whole model as one fragment.
FragmentLayout WholeModel(const Manifest& manifest);
std::vector<float> Parameters(Replica& replica);

}  // namespace atl::testing

#endif  // ATOLL_TESTS_WORKER_TORCH_TINY_RUN_H_
