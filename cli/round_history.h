#ifndef ATOLL_CLI_ROUND_HISTORY_H_
#define ATOLL_CLI_ROUND_HISTORY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "atoll/v1/admin.pb.h"

namespace atl {

/// The last `limit` rounds of the reply as a table, the newest below: version, when it was made,
/// contributions, losses. An unknown loss is "-". Without rounds, one line that says so. Pure.
std::vector<std::string> RenderHistory(const v1::GetStatusReply& status, uint32_t limit);

}  // namespace atl

#endif  // ATOLL_CLI_ROUND_HISTORY_H_
