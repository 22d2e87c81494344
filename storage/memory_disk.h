#ifndef ATOLL_STORAGE_MEMORY_DISK_H_
#define ATOLL_STORAGE_MEMORY_DISK_H_

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "common/mutex.h"
#include "core/contribution.h"
#include "storage/run_store.h"

namespace atl {

/// The contents of a checkpoint of a memory store.
struct MemoryCheckpoint {
  CheckpointManifest manifest;
  std::map<std::string, std::string> meta;
  std::map<ContributionKey, std::shared_ptr<const std::string>> payloads;
  std::map<std::pair<FragmentId, Version>, FragmentTensors> tensors;
};

/// The contents of a memory store, and the one mutex that guards all of it.
class MemoryDisk {
 public:
  using Bytes = std::shared_ptr<const std::string>;  // a staged payload is never changed in place

  Mutex mutex;
  std::map<std::string, std::string> meta ABSL_GUARDED_BY(mutex);
  std::map<ContributionKey, Bytes> payloads ABSL_GUARDED_BY(mutex);
  std::set<ContributionKey> uploading ABSL_GUARDED_BY(mutex);
  std::map<std::pair<FragmentId, Version>, FragmentTensors> tensors ABSL_GUARDED_BY(mutex);
  std::map<std::string, MemoryCheckpoint> checkpoints ABSL_GUARDED_BY(mutex);
  std::string noted_import ABSL_GUARDED_BY(mutex);
};

}  // namespace atl

#endif  // ATOLL_STORAGE_MEMORY_DISK_H_
