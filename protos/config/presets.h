#ifndef ATOLL_PROTOS_CONFIG_PRESETS_H_
#define ATOLL_PROTOS_CONFIG_PRESETS_H_

#include <vector>

#include "protos/config/problem.h"
#include "protos/config/yaml_tree.h"

namespace atl {

/// Replaces each preset by its settings. `model: {preset: NAME}`, or shortly `model: NAME`, is the section of
/// a published model (core/model_presets.h): it fills the fields that the file does not set in that model's
/// section. `model: external` becomes `model: {external: {}}`, and an external
/// model has `data.tokenizer: none` if the file names none. `offenders: strict` becomes `offenders:
/// {ban_after: 3}`. If the file sets neither merge.method nor merge.norm_guard, it also sets `merge.method:
/// centered_clip`, or `merge.norm_guard: true` with a topk codec, which centered_clip cannot merge.
/// docs/reference/byzantine.md has the measurements. Returns the problems of invalid presets;
/// each replaces what ReadMessage says of the same path and line.
std::vector<ConfigProblem> ExpandPresets(YamlNode* root);

}  // namespace atl

#endif  // ATOLL_PROTOS_CONFIG_PRESETS_H_
