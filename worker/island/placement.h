#ifndef ATOLL_WORKER_ISLAND_PLACEMENT_H_
#define ATOLL_WORKER_ISLAND_PLACEMENT_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/rank_limits.h"

namespace atl {

/// Set for the processes that a supervisor has started, beside torchrun's variables: the file of their store.
inline constexpr char kSupervisedVariable[] = "ATOLL_SUPERVISED_RANK";

/// The options of atoll-worker that are about ranks.
struct IslandFlags {
  uint32_t ranks = 0;                           // --ranks: start so many on this host; 0: not given
  std::string island = {};                      // --island HOST:PORT of rank 0
  std::optional<uint32_t> rank = std::nullopt;  // --rank
  uint32_t world_size = 0;                      // --world-size; 0: not given
  double rank_timeout_s = 60;                   // --rank-timeout
  uint32_t max_restarts = 10;                   // --max-restarts, in a row
};

/// Where one process stands in its island.
struct IslandPlace {
  uint32_t rank = 0;
  uint32_t size = 1;        // ranks of the island
  uint32_t local_rank = 0;  // among the ranks of this host
  uint32_t local_size = 1;
  std::string store_host = {};  // where the ranks find each other; rank 0's host
  uint16_t store_port = 0;
  bool hosts_store = false;     // this process does; false on rank 0 when torchrun's agent does
  bool supervised = false;      // by a supervisor of ours, on one host
  std::string store_file = {};  // the store of supervised ranks, in place of a port
  std::string attempt = {};  // torchrun's count of restarts: a store that stays has keys of the life before
};

/// What a process is to do.
struct IslandRole {
  bool supervises = false;                          // starts `flags.ranks` processes
  std::optional<IslandPlace> place = std::nullopt;  // of a rank
};

/// A variable of the environment, or nothing.
using Environment = std::function<std::optional<std::string>(const char* name)>;

/// From the options, or torchrun's variables (RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, MASTER_ADDR,
/// MASTER_PORT, TORCHELASTIC_USE_AGENT_STORE, TORCHELASTIC_RESTART_COUNT). Neither: a worker alone.
/// InvalidArgument, naming what is missing or contradicts, and what to give.
absl::StatusOr<IslandRole> FindIslandRole(const IslandFlags& flags, const Environment& environment);

/// The device of a rank for --device: "auto" and "cuda" are cuda:LOCAL_RANK; "cpu" stays. `cuda_devices`:
/// that LibTorch sees. InvalidArgument, with the remedy, for a device that is not there, or cuda:N.
absl::StatusOr<std::string> DeviceOfRank(const std::string& device, const IslandPlace& place,
                                         uint32_t cuda_devices);

/// Threads of one rank: its part of `threads`, or of `available` when that is 0. At least 1.
int ThreadsOfRank(int threads, int available, const IslandPlace& place);

}  // namespace atl

#endif  // ATOLL_WORKER_ISLAND_PLACEMENT_H_
