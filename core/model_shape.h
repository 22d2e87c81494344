#ifndef ATOLL_CORE_MODEL_SHAPE_H_
#define ATOLL_CORE_MODEL_SHAPE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/manifest.h"
#include "core/model_options.h"
#include "core/run_options.h"

namespace atl {

/// A setting of a model's section that no model can be built of.
struct ModelProblem {
  std::string setting;  // within the section, e.g. "heads"
  std::string text;     // e.g. "5 does not divide model.gpt.width, which is 64"
};

/// A setting of a model's section, and its value in words.
struct ModelSetting {
  std::string setting;
  std::string value;
};

/// What is known of a model before anybody builds it: everything that the coordinator, the plan and the
/// checks of a configuration ask. One implementation per family. Immutable and thread-safe.
class ModelShape {
 public:
  virtual ~ModelShape() = default;

  /// The key of its section in the configuration, e.g. "gpt".
  virtual std::string_view family() const = 0;
  /// Its settings' place in the configuration, e.g. "model.gpt".
  std::string section() const { return "model." + std::string(family()); }

  /// What is wrong with the options, beyond the range of each.
  virtual std::optional<ModelProblem> FindProblem() const = 0;
  /// What is fixed when a run begins: parameters or data depend on it.
  virtual std::vector<ModelSetting> FixedSettings() const = 0;

  /// The tensors in their order, which is that of the parameters everywhere; nullopt: only the workers know
  /// them.
  virtual std::optional<Manifest> MakeManifest() const = 0;
  /// Blocks of the same tensors that follow each other; a strided fragment needs one. 0: not known.
  virtual uint32_t blocks() const = 0;

  /// Estimated bytes of activations, per token of a micro-batch (PlanWorkerMemory). Recomputed: the float32
  /// input of each block, and all of one block.
  uint64_t ActivationBytesPerToken(Precision precision, Activations activations) const;
  /// Floating-point operations of one token's forward and backward pass.
  virtual double TrainingFlopsPerToken() const = 0;

 protected:
  /// What one block keeps, per token.
  virtual uint64_t BlockBytesPerToken(Precision precision) const = 0;
  /// What is kept besides the blocks, per token.
  virtual uint64_t OutputBytesPerToken() const = 0;
  /// Values of the stream that runs through the blocks, per token.
  virtual uint32_t width() const = 0;
};

/// Of the model's family; never null.
std::unique_ptr<const ModelShape> ShapeOf(const ModelOptions& model);

/// ShapeOf(model)->MakeManifest(). FailedPrecondition when only the workers know the model.
absl::StatusOr<Manifest> ManifestOf(const ModelOptions& model);

}  // namespace atl

#endif  // ATOLL_CORE_MODEL_SHAPE_H_
