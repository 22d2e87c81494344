#ifndef ATOLL_STORAGE_RUN_CHECKS_H_
#define ATOLL_STORAGE_RUN_CHECKS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "storage/run_store.h"

// Checks of one argument that need no knowledge of the run. InvalidArgument naming the field.

namespace atl {

inline constexpr uint32_t kMaxShards = 256;
inline constexpr uint32_t kMaxStateVectors = 16;
/// 1 GiB a value; the writer of a shard holds one value at a time.
inline constexpr uint64_t kMaxChunkElements = uint64_t{1} << 28;

absl::Status CheckIdentity(const RunIdentity& identity);
/// The name becomes part of a key and of a file's name.
absl::Status CheckWorkerName(const WorkerName& name);
/// `elements` floats in the parameters and in each of `state_vectors` vectors.
absl::Status CheckTensors(FragmentId fragment, uint64_t elements, size_t state_vectors,
                          const FragmentTensorsView& tensors);

/// `target` has the entry's shape.
absl::Status CheckTarget(const StoredEntry& stored, const FragmentTensorsTarget& target);
/// The entry has these elements.
absl::Status CheckRange(const StoredEntry& stored, const VectorPosition& from, uint64_t elements);

}  // namespace atl

#endif  // ATOLL_STORAGE_RUN_CHECKS_H_
