#include "core/external_shape.h"

#include "absl/strings/str_cat.h"

namespace atl {

std::vector<ModelSetting> ExternalShape::FixedSettings() const {
  std::vector<ModelSetting> settings = {{"context", absl::StrCat(options_.context)}};
  if (!options_.script.empty()) settings.push_back({"vocabulary", absl::StrCat(options_.vocabulary)});
  return settings;
}

}  // namespace atl
