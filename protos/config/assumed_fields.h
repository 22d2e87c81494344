#ifndef ATOLL_PROTOS_CONFIG_ASSUMED_FIELDS_H_
#define ATOLL_PROTOS_CONFIG_ASSUMED_FIELDS_H_

#include <map>
#include <string>
#include <vector>

#include "atoll/v1/run.pb.h"

// When a release changes a default, the new default applies to new runs. An existing run keeps its recorded
// value, even if its configuration file does not set the field.

namespace atl {

/// Paths of the fields that are not in `given` (path to line) and had another default in an older release
/// (rule absent_value).
std::vector<std::string> AssumedFields(const std::map<std::string, int>& given);

/// Copies these fields from `recorded` to `config`.
void KeepRecorded(const std::vector<std::string>& paths, const v1::RunConfig& recorded,
                  v1::RunConfig* config);

}  // namespace atl

#endif  // ATOLL_PROTOS_CONFIG_ASSUMED_FIELDS_H_
