#ifndef ATOLL_PROTOS_CONFIG_PRESETS_H_
#define ATOLL_PROTOS_CONFIG_PRESETS_H_

#include <vector>

#include "protos/config/problem.h"
#include "protos/config/yaml_tree.h"

namespace atl {

/// Replaces each word that stands for settings by those settings. There is one: `offenders: strict` becomes
/// `offenders: {ban_after: 3}`, and, where the file gives neither merge.method nor merge.norm_guard,
/// `merge.method: centered_clip` too (`merge.norm_guard: true` with a topk codec, which centered_clip cannot
/// merge). docs/reference/byzantine.md has the measurements. Returns what is wrong with a preset.
std::vector<ConfigProblem> ExpandPresets(YamlNode* root);

}  // namespace atl

#endif  // ATOLL_PROTOS_CONFIG_PRESETS_H_
