#ifndef ATOLL_CLIENT_SYNC_SEEDING_H_
#define ATOLL_CLIENT_SYNC_SEEDING_H_

#include <vector>

#include "absl/status/status.h"
#include "client/sync/context.h"
#include "client/sync/replica.h"
#include "client/sync/retry_policy.h"
#include "client/sync/session.h"
#include "core/fragment_plan.h"

namespace atl {

/// Uploads the replica's initial parameters as version 0. Only for the worker that holds the grant
/// (WorkerCommands). One attempt; any failure leaves the run unseeded, unless an attempt whose answer was
/// lost seeded it. InvalidArgument, without a call, naming the first value that is not finite. Holds 4 bytes
/// per parameter while it runs.
absl::Status SeedRun(Session& session, Replica& replica, const std::vector<FragmentLayout>& layout,
                     const WorkerContext& context);

/// Uses the grant to seed, once. OK also when it failed and another attempt, or another worker's, will be
/// seen by the next pull. Errors: WRONG_EPOCH, refusals that waiting does not mend, defects.
absl::Status UseSeedGrant(Session& session, Replica& replica, const std::vector<FragmentLayout>& layout,
                          RetryPolicy& retry_policy, const WorkerContext& context);

}  // namespace atl

#endif  // ATOLL_CLIENT_SYNC_SEEDING_H_
