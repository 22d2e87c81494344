#ifndef ATOLL_STORAGE_DESCRIBE_H_
#define ATOLL_STORAGE_DESCRIBE_H_

#include <string>

#include "common/ids.h"
#include "core/contribution.h"

namespace atl {

/// "contribution of worker a to fragment 0 on base 7 (sequence 0, epoch 00000000000000ff)".
std::string Describe(const ContributionKey& key);
/// "fragment 0 version 7".
std::string Describe(FragmentId fragment, Version version);

}  // namespace atl

#endif  // ATOLL_STORAGE_DESCRIBE_H_
