#ifndef ATOLL_STORAGE_MEMORY_STORE_H_
#define ATOLL_STORAGE_MEMORY_STORE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "storage/run_store.h"

namespace atl {

/// The disk of a memory store. It outlives the store, so that another store can be opened on it as after a
/// restart. Only one store may be open at a time.
class MemoryDisk;
std::shared_ptr<MemoryDisk> NewMemoryDisk();
/// The contents after a kill -9 at this moment. Later stores on the disk see only these contents.
std::shared_ptr<MemoryDisk> CloneMemoryDisk(MemoryDisk& disk);

/// The reference RunStore: the simplest implementation of the interface, for tests and for comparison with
/// the real one. One mutex around everything; durable while the disk lives. An upload must not outlive its
/// store.
absl::StatusOr<std::unique_ptr<RunStore>> OpenMemoryStore(const std::shared_ptr<MemoryDisk>& disk);

}  // namespace atl

#endif  // ATOLL_STORAGE_MEMORY_STORE_H_
