#ifndef ATOLL_WORKER_TORCH_REPLICA_DATA_H_
#define ATOLL_WORKER_TORCH_REPLICA_DATA_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "core/run_options.h"
#include "worker/data/batches.h"
#include "worker/data/training_data.h"

namespace atl {

/// What a replica trains on. `data` is null if it has no dataset.
struct ReplicaData {
  std::shared_ptr<const TrainingData> data;
  SequenceOptions sequences;
};

/// Opens the folder for this run; an empty name opens nothing. InvalidArgument for a model or a batch of no
/// size, as for TrainingData::Open, and if data.isolate_documents is set and the data does not say which
/// token ends a document.
absl::StatusOr<ReplicaData> OpenReplicaData(const RunOptions& run, const std::string& folder);

}  // namespace atl

#endif  // ATOLL_WORKER_TORCH_REPLICA_DATA_H_
