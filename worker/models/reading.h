#ifndef ATOLL_WORKER_MODELS_READING_H_
#define ATOLL_WORKER_MODELS_READING_H_

#include <optional>

#include "worker/torch/document_layout.h"
#include "worker/torch/key_value_cache.h"
#include "worker/torch/language_model.h"

namespace atl {

/// How a model reads a batch. Copies share tensors and cache.
struct Reading {
  ModelMode mode = ModelMode::kEvaluation;
  KeyValueCache* cache = nullptr;  // positions that stand before the tokens; null in training
  std::optional<DocumentLayout> documents = std::nullopt;  // empty: each row is one text; not with a cache
};

}  // namespace atl

#endif  // ATOLL_WORKER_MODELS_READING_H_
