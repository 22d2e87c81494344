#ifndef ATOLL_WORKER_ISLAND_RANK_CALL_H_
#define ATOLL_WORKER_ISLAND_RANK_CALL_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/sync/replica.h"
#include "core/fragment_plan.h"

// What rank 0 tells the other ranks to do, and what they answer: docs/reference/islands.md has the grammar.

namespace atl {

enum class RankCallKind : uint8_t {
  kBuild = 1,          // config, partition, partitions
  kDrop = 2,           // forget the replica
  kWriteFragment = 3,  // fragment; the values follow as a broadcast
  kInnerStep = 4,      // learning_rate
  kSetPartition = 5,   // partition, partitions
  kSeek = 6,           // position
  kSaveState = 7,
  kLoadState = 8,  // state without its moments, which follow as messages
  kEvaluate = 9,   // batches
};

struct RankCall {
  RankCallKind kind = RankCallKind::kDrop;
  std::string config = {};  // serialised RunConfig
  bool has_data = false;    // partition and partitions are given
  uint32_t partition = 0;
  uint32_t partitions = 1;
  uint64_t position = 0;
  double learning_rate = 0;
  uint32_t batches = 0;
  FragmentLayout fragment = {};
  ReplicaState state = {};
};

std::string EncodeRankCall(const RankCall& call);
/// InvalidArgument when the bytes are no call.
absl::StatusOr<RankCall> DecodeRankCall(std::string_view bytes);

/// How a call ended on one rank. Of a status, code and message travel.
struct RankReply {
  absl::Status status = {};
  std::string manifest_hash = {};  // of kBuild
};

std::string EncodeRankReply(const RankReply& reply);
absl::StatusOr<RankReply> DecodeRankReply(std::string_view bytes);

}  // namespace atl

#endif  // ATOLL_WORKER_ISLAND_RANK_CALL_H_
