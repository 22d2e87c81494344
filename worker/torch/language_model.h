#ifndef ATOLL_WORKER_TORCH_LANGUAGE_MODEL_H_
#define ATOLL_WORKER_TORCH_LANGUAGE_MODEL_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/manifest.h"
#include "core/model_options.h"
#include "core/run_options.h"
#include "worker/torch/document_layout.h"
#include "worker/torch/flat_parameters.h"
#include "worker/torch/key_value_cache.h"
#include "worker/torch/libtorch.h"

namespace atl {

/// Whether dropout acts.
enum class ModelMode { kTraining, kEvaluation };

/// A model that predicts the next token, over parameters that it does not own. The replica trains it without
/// knowing its family. Methods throw what LibTorch throws. Not thread-safe.
class LanguageModel {
 public:
  virtual ~LanguageModel() = default;

  /// Fills the parameters with their values before training. One LibTorch gives one seed the same model on
  /// every device.
  virtual void Initialise(uint64_t seed) = 0;

  /// Whether a training step draws from LibTorch's default generator, as dropout does.
  virtual bool draws_random_numbers() const = 0;

  /// tokens: int64 [batch, time], time <= context. Returns float32 logits [batch*time, vocabulary].
  virtual torch::Tensor Logits(const torch::Tensor& tokens, ModelMode mode) const = 0;

  /// An empty cache for up to `capacity` positions.
  virtual KeyValueCache MakeCache(int64_t capacity) const = 0;

  /// Reads tokens that follow the positions of the cache, and adds them to it. tokens: int64 [batch, time];
  /// any number of them while the cache is empty, and one at a time after that. Returns the float32 logits of
  /// the last position, [batch, vocabulary], as in ModelMode::kEvaluation.
  virtual torch::Tensor NextLogits(const torch::Tensor& tokens, KeyValueCache& cache) const = 0;

  /// Mean cross-entropy in nats per token, a float32 scalar. targets: int64 [batch, time].
  virtual torch::Tensor Loss(const torch::Tensor& tokens, const torch::Tensor& targets,
                             ModelMode mode) const = 0;

  /// The same of documents that do not see each other, over the targets that are not below 0; 0 without any.
  virtual torch::Tensor LossOfDocuments(const torch::Tensor& tokens, const torch::Tensor& targets,
                                        const DocumentLayout& documents, ModelMode mode) const = 0;
};

/// InvalidArgument naming the section and the setting when no model can be built of these options;
/// FailedPrecondition when the model is external.
/// Implemented by worker/models/model_factory.cc, which has every family.
absl::Status CheckModelOptions(const ModelOptions& model);

/// The tensors of the model that MakeLanguageModel builds: ManifestOf(model), or those of its TorchScript
/// file, whose errors name it.
/// Implemented by worker/models/model_factory.cc.
absl::StatusOr<Manifest> ManifestToTrain(const ModelOptions& model);

/// Builds the model of this family. `parameters` was created from ManifestToTrain(model) and outlives the
/// model.
/// Implemented by worker/models/model_factory.cc.
std::unique_ptr<LanguageModel> MakeLanguageModel(const ModelOptions& model, Precision precision,
                                                 FlatParameters& parameters,
                                                 Activations activations = Activations::kKept);

}  // namespace atl

#endif  // ATOLL_WORKER_TORCH_LANGUAGE_MODEL_H_
