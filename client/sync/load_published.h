#ifndef ATOLL_CLIENT_SYNC_LOAD_PUBLISHED_H_
#define ATOLL_CLIENT_SYNC_LOAD_PUBLISHED_H_

#include "absl/status/status.h"
#include "client/sync/connection.h"
#include "client/sync/replica.h"

namespace atl {

/// Puts the head of every fragment into the replica. In a blocking run all are of one version: fragments that
/// are behind are pulled again, and after five times it is Unavailable. In an overlapped run each has a
/// version of its own. Returns the lowest version. FailedPrecondition when the run is not seeded.
absl::StatusOr<Version> LoadPublished(CoordinatorConnection& connection, const JoinedRun& info,
                                      Replica& replica);

}  // namespace atl

#endif  // ATOLL_CLIENT_SYNC_LOAD_PUBLISHED_H_
