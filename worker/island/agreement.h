#ifndef ATOLL_WORKER_ISLAND_AGREEMENT_H_
#define ATOLL_WORKER_ISLAND_AGREEMENT_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace atl {

/// What a rank says of itself before the island forms: what must be equal on all ranks, and who it is.
struct RankFacts {
  uint32_t rank = 0;
  uint32_t size = 1;
  std::string host;      // its name, for messages
  uint64_t process = 0;  // its id, for messages
  std::string version;   // of the program, with the revision that it was built from
  std::string torch;     // version of LibTorch
  std::string device;    // "cpu" or "cuda": what it computes on
  std::string dataset;   // fingerprint of its token files
  std::string name;      // of the worker, as it was given; may be empty
};

std::string EncodeRankFacts(const RankFacts& facts);
/// InvalidArgument: another protocol, or damaged.
absl::StatusOr<RankFacts> DecodeRankFacts(std::string_view bytes);

/// InvalidArgument when `other` cannot be a rank of the island of `first`, which is rank 0: names what
/// differs, both values, and what to do.
absl::Status CheckAgreement(const RankFacts& first, const RankFacts& other);

/// InvalidArgument when a rank has built another model than rank 0.
absl::Status CheckSameModel(const std::string& first_manifest, uint32_t rank, const std::string& manifest);

}  // namespace atl

#endif  // ATOLL_WORKER_ISLAND_AGREEMENT_H_
