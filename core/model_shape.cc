#include "core/model_shape.h"

#include "core/gpt_shape.h"

namespace atl {
namespace {

/// One function per family.
struct MakeShape {
  std::unique_ptr<const ModelShape> operator()(const GptOptions& gpt) const {
    return std::make_unique<GptShape>(gpt);
  }
};

}  // namespace

std::unique_ptr<const ModelShape> ShapeOf(const ModelOptions& model) {
  return std::visit(MakeShape(), model.family());
}

Manifest ManifestOf(const ModelOptions& model) { return ShapeOf(model)->MakeManifest(); }

}  // namespace atl
