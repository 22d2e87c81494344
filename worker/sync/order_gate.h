#ifndef ATOLL_WORKER_SYNC_ORDER_GATE_H_
#define ATOLL_WORKER_SYNC_ORDER_GATE_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/sync/context.h"

namespace atoll {

/// Asked before each inner step: whether an order ends the steps here. Waits while the run is paused.
/// `heed` follows what heartbeats learnt about the membership; its error comes back.
absl::StatusOr<bool> OrderedToEnd(const std::function<absl::Status(const Orders&)>& heed,
                                  const WorkerContext& context);

}  // namespace atoll

#endif  // ATOLL_WORKER_SYNC_ORDER_GATE_H_
