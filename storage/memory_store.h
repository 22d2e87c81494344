#ifndef ATOLL_STORAGE_MEMORY_STORE_H_
#define ATOLL_STORAGE_MEMORY_STORE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "storage/run_store.h"

namespace atl {

/// What a memory store writes to; outlives the store, so that another one can be opened on it as after a
/// restart. One open store at a time.
class MemoryDisk;
std::shared_ptr<MemoryDisk> NewMemoryDisk();
/// What would be found after a kill -9 at this moment. The stores on the disk go on with it alone.
std::shared_ptr<MemoryDisk> CloneMemoryDisk(MemoryDisk& disk);

/// The reference RunStore: the plainest thing that keeps the interface's promises, for tests and for
/// comparing the real one with. One mutex around everything; durable as long as the disk lives. An upload
/// must not outlive its store.
absl::StatusOr<std::unique_ptr<RunStore>> OpenMemoryStore(const std::shared_ptr<MemoryDisk>& disk);

}  // namespace atl

#endif  // ATOLL_STORAGE_MEMORY_STORE_H_
