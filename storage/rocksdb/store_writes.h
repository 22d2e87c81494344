#ifndef ATOLL_STORAGE_ROCKSDB_STORE_WRITES_H_
#define ATOLL_STORAGE_ROCKSDB_STORE_WRITES_H_

#include <cstdint>

#include "storage/meta_keys.h"
#include "storage/record.h"
#include "storage/rocksdb/meta_db.h"
#include "storage/run_store.h"

// Shared by the parts of RocksDbRunStore.

namespace atl {

/// The record under its own key.
template <typename T>
void Put(MetaBatch& batch, const T& record) {
  batch.Put(meta_keys::KeyOf(record), EncodeRecord(record));
}

inline uint64_t BytesOf(const FragmentTensorsView& tensors) {
  return tensors.parameters.size_bytes() * (1 + tensors.state.size());
}

}  // namespace atl

#endif  // ATOLL_STORAGE_ROCKSDB_STORE_WRITES_H_
