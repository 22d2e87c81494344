#ifndef ATOLL_CORE_EXTERNAL_SHAPE_H_
#define ATOLL_CORE_EXTERNAL_SHAPE_H_

#include <optional>
#include <string_view>
#include <vector>

#include "core/external_options.h"
#include "core/model_shape.h"

namespace atl {

/// The shape of a model that only the workers know: there is none before they bring it.
class ExternalShape final : public ModelShape {
 public:
  explicit ExternalShape(const ExternalOptions& options) : options_(options) {}

  std::string_view family() const override { return options_.script.empty() ? "external" : "torchscript"; }
  std::optional<ModelProblem> FindProblem() const override { return std::nullopt; }
  /// The context: tokens are counted by it; and the vocabulary of a script. The expected number of parameters
  /// is a check only, and the file may lie elsewhere: its contents are compared.
  std::vector<ModelSetting> FixedSettings() const override;
  std::optional<Manifest> MakeManifest() const override { return std::nullopt; }
  uint32_t blocks() const override { return 0; }
  double TrainingFlopsPerToken() const override { return 0; }

 protected:
  uint64_t BlockBytesPerToken(Precision /*precision*/) const override { return 0; }
  uint64_t OutputBytesPerToken() const override { return 0; }
  uint32_t width() const override { return 0; }

 private:
  const ExternalOptions options_;
};

}  // namespace atl

#endif  // ATOLL_CORE_EXTERNAL_SHAPE_H_
