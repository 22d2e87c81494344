#ifndef ATOLL_WORKER_ISLAND_SUPERVISOR_H_
#define ATOLL_WORKER_ISLAND_SUPERVISOR_H_

#include <cstdint>

#include "common/clock.h"
#include "common/log.h"
#include "common/shutdown.h"

namespace atl {

struct SupervisorOptions {
  uint32_t ranks = 2;
  uint32_t max_restarts = 10;          // in a row
  Duration settled = Seconds(600);     // an island that lived so long resets the count
  char* const* arguments = nullptr;    // of this program, as main has them
  char* const* environment = nullptr;  // of this process
  Logger log;
};

/// Starts the ranks of an island on this host as processes of this program, and starts all of them again when
/// one is lost. Forwards the first signal, and ends when rank 0 has ended by itself, or a rank by SIGTERM,
/// SIGINT or SIGHUP. Returns the exit code: rank 0's, that of the first rank that refused to run, or 128 +
/// the signal. Prints what the ranks log, each line with its rank. Call it on the main thread: the ranks get
/// SIGTERM when that thread ends.
int SuperviseRanks(const SupervisorOptions& options, Shutdown& shutdown);

}  // namespace atl

#endif  // ATOLL_WORKER_ISLAND_SUPERVISOR_H_
