#ifndef ATOLL_SERVER_SERVICES_H_
#define ATOLL_SERVER_SERVICES_H_

#include <atomic>

#include "common/byte_budget.h"
#include "common/clock.h"
#include "common/log.h"
#include "server/create_coordinator.h"
#include "server/observer.h"
#include "server/outbox.h"
#include "server/run_book.h"
#include "server/snapshot_board.h"
#include "storage/run_store.h"

namespace atoll {

/// What the parts of one coordinator share. Everything outlives every part.
struct Services {
  CoordinatorOptions options;
  RunIdentity identity;
  RunStore* store = nullptr;
  const Clock* clock = nullptr;
  CoordinatorObserver* observer = nullptr;
  RunBook* book = nullptr;
  SnapshotBoard* board = nullptr;
  Outbox* outbox = nullptr;
  ByteBudget* budget = nullptr;
  std::atomic<bool>* shutting_down = nullptr;
  Logger log;
};

}  // namespace atoll

#endif  // ATOLL_SERVER_SERVICES_H_
