#ifndef ATOLL_CORE_HF_MODEL_OF_CONFIG_H_
#define ATOLL_CORE_HF_MODEL_OF_CONFIG_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "core/model_options.h"

namespace atl {

/// The model that a config.json of transformers describes. A missing field has transformers' default.
/// InvalidArgument names `source` and the field: the architecture is none of core/hf/layout.h, a size is
/// missing or out of range, or the file says something that no model here does (CheckHfConfig).
absl::StatusOr<ModelOptions> ModelOfHfConfig(std::string_view text, std::string_view source);

}  // namespace atl

#endif  // ATOLL_CORE_HF_MODEL_OF_CONFIG_H_
