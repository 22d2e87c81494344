#ifndef ATOLL_CLI_WORKER_VIEW_H_
#define ATOLL_CLI_WORKER_VIEW_H_

#include <optional>
#include <string>
#include <vector>

#include "atoll/v1/admin.pb.h"

namespace atl {

/// The part of its device's measured speed that a worker's model uses (MFU); nullopt: unknown, or it does
/// not train.
std::optional<double> ModelFlopsUtilization(const v1::Progress& progress);

/// All details of one worker, one per line.
std::vector<std::string> DescribeWorker(const v1::WorkerStatus& worker);

}  // namespace atl

#endif  // ATOLL_CLI_WORKER_VIEW_H_
