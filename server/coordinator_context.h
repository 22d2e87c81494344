#ifndef ATOLL_SERVER_COORDINATOR_CONTEXT_H_
#define ATOLL_SERVER_COORDINATOR_CONTEXT_H_

#include <atomic>

#include "common/byte_budget.h"
#include "common/clock.h"
#include "common/log.h"
#include "server/create_coordinator.h"
#include "server/events/observer.h"
#include "server/publish/published_versions.h"
#include "server/run/coordinator_state.h"
#include "server/run/effect_executor.h"
#include "storage/run_store.h"

namespace atl {

/// What the parts of one coordinator share. Everything outlives every part.
struct CoordinatorContext {
  /// The configuration in force. Thread-safe.
  ConfigPtr config() const { return state->settings().config(); }

  ServingOptions options;
  RunIdentity identity;
  RunStore* store = nullptr;
  const Clock* clock = nullptr;
  CoordinatorObserver* observer = nullptr;
  CoordinatorState* state = nullptr;
  PublishedVersions* published_versions = nullptr;
  EffectExecutor* effect_executor = nullptr;
  ByteBudget* budget = nullptr;
  std::atomic<bool>* shutting_down = nullptr;
  Logger log;
};

}  // namespace atl

#endif  // ATOLL_SERVER_COORDINATOR_CONTEXT_H_
