#include "core/model_shape.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/external_shape.h"
#include "core/gpt_shape.h"
#include "core/llama_shape.h"

namespace atl {
namespace {

/// One function per family.
struct MakeShape {
  std::unique_ptr<const ModelShape> operator()(const GptOptions& gpt) const {
    return std::make_unique<GptShape>(gpt);
  }
  std::unique_ptr<const ModelShape> operator()(const LlamaOptions& llama) const {
    return std::make_unique<LlamaShape>(llama);
  }
  std::unique_ptr<const ModelShape> operator()(const ExternalOptions& external) const {
    return std::make_unique<ExternalShape>(external);
  }
};

}  // namespace

std::unique_ptr<const ModelShape> ShapeOf(const ModelOptions& model) {
  return std::visit(MakeShape(), model.family());
}

uint64_t ModelShape::ActivationBytesPerToken(Precision precision, Activations activations) const {
  const uint64_t block = BlockBytesPerToken(precision);
  if (activations == Activations::kKept) return blocks() * block + OutputBytesPerToken();
  return uint64_t{blocks()} * width() * sizeof(float) + block + OutputBytesPerToken();
}

absl::StatusOr<Manifest> ManifestOf(const ModelOptions& model) {
  const auto shape = ShapeOf(model);
  std::optional<Manifest> manifest = shape->MakeManifest();
  if (manifest) return *std::move(manifest);
  return absl::FailedPreconditionError(
      absl::StrCat(shape->section(),
                   ": the run's tensors are those of the first worker that seeds it; nothing else "
                   "knows them"));
}

}  // namespace atl
