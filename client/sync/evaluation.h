#ifndef ATOLL_CLIENT_SYNC_EVALUATION_H_
#define ATOLL_CLIENT_SYNC_EVALUATION_H_

#include "absl/status/status.h"
#include "client/sync/context.h"
#include "client/sync/heartbeater.h"
#include "client/sync/replica.h"
#include "common/ids.h"
#include "core/run_options.h"

namespace atl {

/// A version to evaluate, as its plan asks for it.
struct EvaluationOrder {
  Version version = {};
  bool tasks = false;  // those of evaluation.tasks too
};

/// Evaluates the replica, which must hold exactly the published parameters of that version, and reports the
/// loss with a heartbeat that is sent at once, after the tasks if they are asked for. A loss that is not
/// finite is logged and not reported. A command or the end of the membership ends the tasks between two
/// questions: then the loss is reported alone.
absl::Status EvaluateVersion(Replica& replica, const EvaluationOrder& order, const RunOptions& run,
                             Heartbeater& heartbeater, const WorkerContext& context);

/// Before leaving: beats until every evaluation has been delivered, at most `attempts` times, and once if
/// there are confirmations to tell. Failing is logged.
void DeliverReport(Heartbeater& heartbeater, int attempts, const WorkerContext& context);

}  // namespace atl

#endif  // ATOLL_CLIENT_SYNC_EVALUATION_H_
