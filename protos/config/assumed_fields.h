#ifndef ATOLL_PROTOS_CONFIG_ASSUMED_FIELDS_H_
#define ATOLL_PROTOS_CONFIG_ASSUMED_FIELDS_H_

#include <map>
#include <string>
#include <vector>

#include "atoll/v1/run.pb.h"

// A default that changes from one release to the next is for new runs. A run that there is keeps what it has,
// also when its file leaves the field out.

namespace atl {

/// Paths of the fields that are not in `given` (paths, with their lines) and that had another default in an
/// older release (rule absent_value).
std::vector<std::string> AssumedFields(const std::map<std::string, int>& given);

/// Sets these fields of `config` to what they are in `recorded`.
void KeepRecorded(const std::vector<std::string>& paths, const v1::RunConfig& recorded,
                  v1::RunConfig* config);

}  // namespace atl

#endif  // ATOLL_PROTOS_CONFIG_ASSUMED_FIELDS_H_
