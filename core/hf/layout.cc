#include "core/hf/layout.h"

#include "core/hf/gpt2_layout.h"
#include "core/hf/llama_layout.h"

namespace atl {
namespace {

/// One function per family.
struct MakeLayout {
  std::optional<HfLayout> operator()(const GptOptions& gpt) const { return Gpt2Layout(gpt); }
  std::optional<HfLayout> operator()(const LlamaOptions& llama) const { return LlamaLayout(llama); }
  std::optional<HfLayout> operator()(const ExternalOptions&) const { return std::nullopt; }
};

}  // namespace

std::optional<HfLayout> HfLayoutOf(const ModelOptions& model) {
  return std::visit(MakeLayout(), model.family());
}

void AddWritten(std::vector<HfField>& fields, const std::string& name, const HfValue& value) {
  HfField& field = fields.emplace_back();
  field.names = {name};
  field.value = value;
}

HfLayout PlainLayout(const Manifest& manifest) {
  HfLayout layout;
  for (const TensorSpec& tensor : manifest.tensors) {
    layout.tensors.push_back({.name = tensor.name, .shape = tensor.shape});
  }
  return layout;
}

}  // namespace atl
