#include "storage/rocksdb/data_dir.h"

#include "absl/strings/str_format.h"
#include "common/digest.h"

namespace atl {

absl::StatusOr<std::unique_ptr<ShardSet>> OpenShards(const DataDir& dir, const RunIdentity& identity,
                                                     DbAccess access) {
  return ShardSet::Open({.folder = dir.shards(),
                         .staging = dir.staging(),
                         .unique_prefix = absl::StrFormat("%016x", RandomNonZero64()),
                         .shards = identity.shards,
                         .chunk_elements = identity.chunk_elements,
                         .access = access});
}

}  // namespace atl
