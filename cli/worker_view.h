#ifndef ATOLL_CLI_WORKER_VIEW_H_
#define ATOLL_CLI_WORKER_VIEW_H_

#include <string>
#include <vector>

#include "atoll/v1/admin.pb.h"

namespace atl {

/// All there is to know about one worker, a line for each.
std::vector<std::string> DescribeWorker(const v1::WorkerStatus& worker);

}  // namespace atl

#endif  // ATOLL_CLI_WORKER_VIEW_H_
