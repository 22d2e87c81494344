#include "core/external_shape.h"

#include "absl/strings/str_cat.h"

namespace atl {

std::vector<ModelSetting> ExternalShape::FixedSettings() const {
  return {{"context", absl::StrCat(options_.context)}};
}

}  // namespace atl
