#include "protos/config/model_options.h"

namespace atl {
namespace {

GptOptions GptOptionsOf(const v1::GptModel& gpt) {
  GptOptions options;
  options.layers = gpt.layers();
  options.heads = gpt.heads();
  options.width = gpt.width();
  options.context = gpt.context();
  options.vocabulary = gpt.vocabulary();
  options.tied_embeddings = gpt.tied_embeddings();
  options.dropout = gpt.dropout();
  options.bias = gpt.bias();
  return options;
}

ExternalOptions ExternalOptionsOf(const v1::ExternalModel& external) {
  return {.context = external.context(), .parameters = external.parameters()};
}

}  // namespace

ModelOptions ModelOptionsOf(const v1::ModelSection& model) {
  if (model.has_external()) return ModelOptions(ExternalOptionsOf(model.external()));
  return GptOptionsOf(model.gpt());
}

}  // namespace atl
