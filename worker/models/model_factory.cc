#include <memory>
#include <optional>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/llama_shape.h"
#include "core/model_shape.h"
#include "worker/models/gpt.h"
#include "worker/models/llama.h"
#include "worker/models/script_model.h"
#include "worker/torch/language_model.h"

namespace atl {
namespace {

absl::Status Check(const GptOptions& gpt) {
  const bool positive =
      gpt.layers > 0 && gpt.heads > 0 && gpt.context > 0 && gpt.vocabulary >= 2 && gpt.width > 0;
  if (positive && gpt.width % gpt.heads == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("model.gpt: %d layers, %d heads, width %d, context %d, vocabulary %d: all must be "
                      "positive and heads must divide width",
                      gpt.layers, gpt.heads, gpt.width, gpt.context, gpt.vocabulary));
}

absl::Status Check(const LlamaOptions& llama) {
  const LlamaShape shape(llama);
  if (llama.layers == 0 || llama.width == 0 || llama.intermediate == 0 || llama.context == 0 ||
      llama.vocabulary < 2) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "model.llama: %d layers, width %d, intermediate %d, context %d, vocabulary %d: all must be positive",
        llama.layers, llama.width, llama.intermediate, llama.context, llama.vocabulary));
  }
  const std::optional<ModelProblem> problem = shape.FindProblem();
  if (!problem) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(shape.section(), ".", problem->setting, ": ", problem->text));
}

/// One function per family.
struct Maker {
  std::unique_ptr<LanguageModel> operator()(const GptOptions& gpt) const {
    return std::make_unique<Gpt>(gpt, precision, parameters, activations);
  }
  std::unique_ptr<LanguageModel> operator()(const LlamaOptions& llama) const {
    return std::make_unique<Llama>(llama, precision, parameters, activations);
  }
  // CheckModelOptions rejects it without a script.
  std::unique_ptr<LanguageModel> operator()(const ExternalOptions& external) const {
    return std::make_unique<ScriptModel>(external.script, parameters);
  }

  Precision precision;
  FlatParameters& parameters;
  Activations activations;
};

absl::Status Check(const ExternalOptions& external) {
  if (!external.script.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "model.external: only the workers of this run know its model, and this program has models of its own "
      "only; join with a client that has the model (docs/reference/wire_format.md)");
}

}  // namespace

absl::Status CheckModelOptions(const ModelOptions& model) {
  return std::visit([](const auto& of) { return Check(of); }, model.family());
}

absl::StatusOr<Manifest> ManifestToTrain(const ModelOptions& model) {
  const ExternalOptions* const external = model.external();
  if (external == nullptr || external->script.empty()) return ManifestOf(model);
  return ManifestOfScript(external->script);
}

std::unique_ptr<LanguageModel> MakeLanguageModel(const ModelOptions& model, Precision precision,
                                                 FlatParameters& parameters, Activations activations) {
  return std::visit(Maker{precision, parameters, activations}, model.family());
}

}  // namespace atl
