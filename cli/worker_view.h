#ifndef ATOLL_CLI_WORKER_VIEW_H_
#define ATOLL_CLI_WORKER_VIEW_H_

#include <string>
#include <vector>

#include "atoll/v1/admin.pb.h"

namespace atl {

/// All details of one worker, one per line.
std::vector<std::string> DescribeWorker(const v1::WorkerStatus& worker);

}  // namespace atl

#endif  // ATOLL_CLI_WORKER_VIEW_H_
