#ifndef ATOLL_CORE_MODEL_PRESETS_H_
#define ATOLL_CORE_MODEL_PRESETS_H_

#include <span>
#include <string_view>

#include "core/model_options.h"

namespace atl {

/// A published model's architecture by name. Values are those of its config.json on the Hugging Face hub;
/// `context` is the longest text that the model supports.
struct ModelPreset {
  std::string_view name;  // e.g. "smollm2-135m"
  ModelOptions model;
};

/// In the order of the documentation.
std::span<const ModelPreset> ModelPresets();

/// Null if no preset has this name.
const ModelPreset* FindModelPreset(std::string_view name);

}  // namespace atl

#endif  // ATOLL_CORE_MODEL_PRESETS_H_
