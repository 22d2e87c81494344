#ifndef ATOLL_WORKER_APP_LOAD_PUBLISHED_H_
#define ATOLL_WORKER_APP_LOAD_PUBLISHED_H_

#include "absl/status/status.h"
#include "worker/sync/connection.h"
#include "worker/sync/replica.h"

namespace atl {

/// Puts the head of every fragment into the replica. In a blocking run all are of one version: fragments that
/// are behind are pulled again, and after five times it is Unavailable. In an overlapped run each has a
/// version of its own. FailedPrecondition when the run is not seeded.
absl::Status LoadPublished(CoordinatorConnection& connection, const JoinedRun& info, Replica& replica);

}  // namespace atl

#endif  // ATOLL_WORKER_APP_LOAD_PUBLISHED_H_
