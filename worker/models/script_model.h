#ifndef ATOLL_WORKER_MODELS_SCRIPT_MODEL_H_
#define ATOLL_WORKER_MODELS_SCRIPT_MODEL_H_

#include <torch/script.h>

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "core/manifest.h"
#include "worker/torch/flat_parameters.h"
#include "worker/torch/language_model.h"

namespace atl {

/// The parameters that a TorchScript file trains, under its own names, in its order; of tied ones the first
/// name. Those that need no gradient, and buffers, are not among them. Manifest::base_fingerprint is the
/// SHA-256 of the file. InvalidArgument, naming the file: it cannot be read, has no method
/// forward(tokens, targets), a parameter that is not float32, or one that CheckTrainedMemory rejects.
/// NotFound when it is not there.
absl::StatusOr<Manifest> ManifestOfScript(const std::string& path);

/// A module with forward(tokens, targets) -> loss, in TorchScript. tokens and targets are int64 [batch,
/// time]; the loss is a scalar.
class ScriptModel final : public LanguageModel {
 public:
  /// Puts the file's values into `parameters`, which was created from ManifestOfScript(path) and outlives the
  /// model, and makes the module compute with them. Until a loss depends on a parameter, it has no gradient
  /// (FlatParameters::ExpectNoGradient).
  ScriptModel(const std::string& path, FlatParameters& parameters);

  /// Does nothing: the file has the values.
  void Initialise(uint64_t /*seed*/) override {}
  /// Not known, so a step begins with a seed.
  bool draws_random_numbers() const override { return true; }
  /// Throws: a script returns a loss only.
  torch::Tensor Logits(const torch::Tensor& tokens, ModelMode mode) const override;
  KeyValueCache MakeCache(int64_t capacity) const override { return {0, capacity}; }
  torch::Tensor NextLogits(const torch::Tensor& tokens, KeyValueCache& cache) const override;
  torch::Tensor Loss(const torch::Tensor& tokens, const torch::Tensor& targets,
                     ModelMode mode) const override;
  /// Throws: a script knows no documents.
  torch::Tensor LossOfDocuments(const torch::Tensor& tokens, const torch::Tensor& targets,
                                const DocumentLayout& documents, ModelMode mode) const override;

 private:
  torch::IValue Forward(const torch::Tensor& tokens, const torch::Tensor& targets) const;

  const std::string path_;
  // A handle: its methods change what it refers to.
  mutable torch::jit::Module module_;
};

}  // namespace atl

#endif  // ATOLL_WORKER_MODELS_SCRIPT_MODEL_H_
