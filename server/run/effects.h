#ifndef ATOLL_SERVER_RUN_EFFECTS_H_
#define ATOLL_SERVER_RUN_EFFECTS_H_

#include <string>
#include <vector>

#include "common/ids.h"
#include "server/views.h"
#include "storage/run_store.h"

namespace atl {

/// What a change of the run's state asks of the outside: collected under the lock, carried out after it, in
/// this order.
struct Effects {
  std::vector<WorkerName> members;           // their records changed: to be stored
  std::vector<WorkerName> forgotten;         // their records are to be deleted
  std::vector<WorkerEntry> tombstones;       // to be stored in the place of forgotten ones
  std::vector<EvaluationEntry> evaluations;  // to be stored
  std::vector<EventView> events;             // to be appended
  std::vector<Offence> offences;             // to be counted
  bool rounds_changed = false;               // a round may be ready to close
  uint32_t banned_by_rule = 0;               // to be counted
  std::vector<std::string> joins_refused;    // reasons, to be counted

  void Event(EventKind kind, const WorkerName& worker, std::string message) {
    EventView event;
    event.kind = kind;
    event.worker = worker;
    event.message = std::move(message);
    events.push_back(std::move(event));
  }
};

}  // namespace atl

#endif  // ATOLL_SERVER_RUN_EFFECTS_H_
