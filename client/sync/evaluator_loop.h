#ifndef ATOLL_CLIENT_SYNC_EVALUATOR_LOOP_H_
#define ATOLL_CLIENT_SYNC_EVALUATOR_LOOP_H_

#include <vector>

#include "absl/status/statusor.h"
#include "client/sync/context.h"
#include "client/sync/heartbeater.h"
#include "client/sync/outer_sync.h"
#include "client/sync/parameter_puller.h"
#include "client/sync/replica.h"
#include "client/sync/session.h"

namespace atl {

/// The evaluator's role: follows the published parameters, evaluates the versions whose plan asks for it,
/// reports. No round waits for it; versions that came and went during an evaluation are skipped. Not
/// thread-safe.
class EvaluatorLoop {
 public:
  /// All pointers outlive this object.
  EvaluatorLoop(Session* session, Replica* replica, std::vector<FragmentLayout> layout,
                Heartbeater* heartbeater, const WorkerContext& context)
      : session_(session),
        replica_(replica),
        heartbeater_(heartbeater),
        context_(context),
        puller_(session, replica, std::move(layout), context) {}

  /// As OuterSync::Run.
  absl::StatusOr<SyncEnd> Run();

 private:
  Session* const session_;
  Replica* const replica_;
  Heartbeater* const heartbeater_;
  const WorkerContext context_;
  ParameterPuller puller_;
};

}  // namespace atl

#endif  // ATOLL_CLIENT_SYNC_EVALUATOR_LOOP_H_
