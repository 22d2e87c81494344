#ifndef ATOLL_WORKER_APP_WORKER_START_H_
#define ATOLL_WORKER_APP_WORKER_START_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "client/setup/worker_home.h"
#include "client/sync/connection.h"
#include "client/sync/replica.h"
#include "common/log.h"
#include "common/shutdown.h"
#include "core/data_passes.h"
#include "core/protocol/join.h"
#include "core/run_options.h"
#include "worker/app/commands.h"

// What a worker alone and the first rank of an island have in common.

namespace atl {

/// Of a device that was resolved.
DeviceDescription DescribeDevice(const std::string& device, int threads, uint32_t ranks);

/// Writes into the log on which device this process computes, once in its life. Not thread-safe.
class DeviceNotice {
 public:
  DeviceNotice(DeviceDescription device, const Logger& log) : device_(std::move(device)), log_(log) {}

  /// Before each replica of the process is built, all of which are of one run.
  void Say(const RunOptions& run);

 private:
  const DeviceDescription device_;
  const Logger log_;
  bool said_ = false;
};

/// What the worker says of the files in --data. They are checked against the model when it is built, once the
/// coordinator has said what the model is.
struct DataFacts {
  DatasetSummary summary;
  std::vector<TextShare> texts;
};
absl::StatusOr<DataFacts> FactsOfData(const std::string& folder);

/// Joins with what `home` has and trains until the end. `texts` are those of its data. `make_replica` builds
/// the replica.
WorkerOutcome LiveAsMember(const WorkerFlags& flags, WorkerHome home, const std::vector<TextShare>& texts,
                           const ReplicaFactory& make_replica, const Logger& log, Shutdown& shutdown);

}  // namespace atl

#endif  // ATOLL_WORKER_APP_WORKER_START_H_
