#include "protos/config/gpt_options.h"

namespace atl {

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

}  // namespace atl
