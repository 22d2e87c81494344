#ifndef ATOLL_SERVER_OPENING_NEW_EPOCH_H_
#define ATOLL_SERVER_OPENING_NEW_EPOCH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "server/rounds/fragment_state.h"
#include "server/rounds/merge_engine.h"
#include "server/run/config_snapshot.h"
#include "storage/run_store.h"

namespace atl {

/// What is not in the tensors.
struct EpochContents {
  uint64_t committed_tokens = 0;
  std::vector<PartitionEntry> partitions;
  std::string reason;  // for people: where the contents come from
};

/// Makes `fragments` version `heads[i]` + 1 of a new random epoch, and returns what RunStore::BeginEpoch
/// takes: it refers to their tensors. `engine` hashes them.
EpochStart StartEpoch(std::vector<FragmentState>& fragments, const std::vector<Version>& heads,
                      const EpochContents& contents, const ConfigSnapshot& config, int64_t unix_ns,
                      MergeEngine& engine);

}  // namespace atl

#endif  // ATOLL_SERVER_OPENING_NEW_EPOCH_H_
