#include "worker/island/placement.h"

#include <algorithm>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/bind_address.h"
#include "common/status.h"

namespace atl {
namespace {

constexpr char kLoopback[] = "127.0.0.1";

/// The variables of torchrun that a process has.
class Variables {
 public:
  explicit Variables(const Environment& environment) : environment_(environment) {}

  bool Has(const char* name) const { return environment_(name).has_value(); }
  std::string Text(const char* name) const { return environment_(name).value_or(""); }
  absl::StatusOr<uint32_t> Number(const char* name) const {
    uint32_t value = 0;
    if (absl::SimpleAtoi(Text(name), &value)) return value;
    return absl::InvalidArgumentError(
        absl::StrFormat("%s is '%s' and not a number; torchrun sets it, or unset it", name, Text(name)));
  }

 private:
  const Environment& environment_;
};

absl::Status CheckRank(uint32_t rank, uint32_t size) {
  if (size < 1 || size > kMaxRanks) {
    return absl::InvalidArgumentError(
        absl::StrFormat("an island of %d ranks is not possible: the world size is 1 to %d", size, kMaxRanks));
  }
  if (rank < size) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "rank %d is not below the world size of %d; ranks count from 0: give 0 to %d", rank, size, size - 1));
}

absl::StatusOr<IslandRole> FromVariables(const Variables& variables) {
  const bool supervised = variables.Has(kSupervisedVariable);
  std::vector<std::string> missing;
  for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) {
    if (!variables.Has(name) && !(supervised && std::string_view(name).starts_with("MASTER")))
      missing.emplace_back(name);
  }
  if (!missing.empty()) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "some of torchrun's variables are set, and %s missing; start the ranks with torchrun, "
        "or unset RANK and WORLD_SIZE",
        absl::StrJoin(missing, ", ") + (missing.size() == 1 ? " is" : " are")));
  }
  IslandPlace place;
  ATOLL_ASSIGN_OR_RETURN(place.rank, variables.Number("RANK"));
  ATOLL_ASSIGN_OR_RETURN(place.size, variables.Number("WORLD_SIZE"));
  ATOLL_RETURN_IF_ERROR(CheckRank(place.rank, place.size));
  if (variables.Has("LOCAL_RANK")) {
    ATOLL_ASSIGN_OR_RETURN(place.local_rank, variables.Number("LOCAL_RANK"));
  }
  if (variables.Has("LOCAL_WORLD_SIZE")) {
    ATOLL_ASSIGN_OR_RETURN(place.local_size, variables.Number("LOCAL_WORLD_SIZE"));
  }
  if (supervised) {
    place.supervised = true;
    place.store_file = variables.Text(kSupervisedVariable);
    place.store_host = kLoopback;
  } else {
    uint32_t port = 0;
    ATOLL_ASSIGN_OR_RETURN(port, variables.Number("MASTER_PORT"));
    if (port < 1 || port > 65535) {
      return absl::InvalidArgumentError(absl::StrFormat("MASTER_PORT is %d; a port is 1 to 65535", port));
    }
    place.store_host = variables.Text("MASTER_ADDR");
    if (place.store_host.empty()) {
      return absl::InvalidArgumentError("MASTER_ADDR is empty: give the address of rank 0's host");
    }
    place.store_port = static_cast<uint16_t>(port);
    place.hosts_store = place.rank == 0 && variables.Text("TORCHELASTIC_USE_AGENT_STORE") != "True";
    place.attempt = variables.Text("TORCHELASTIC_RESTART_COUNT");
  }
  if (place.size == 1) return IslandRole{};
  return IslandRole{.place = std::move(place)};
}

absl::StatusOr<IslandRole> FromOptions(const IslandFlags& flags) {
  if (!flags.rank.has_value() || flags.world_size == 0) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "--island %s needs --rank and --world-size: which rank this process is, and of how many",
        flags.island));
  }
  ATOLL_RETURN_IF_ERROR(CheckRank(*flags.rank, flags.world_size));
  const auto address = ParseBindAddress(flags.island);
  if (!address.ok()) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "--island %s: give rank 0's host and a port that is free there, the same to all ranks; for example "
        "--island host0:29500",
        flags.island));
  }
  if (address->port == 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("--island %s: the port is 0; give the same port to all ranks", flags.island));
  }
  if (flags.world_size == 1) return IslandRole{};
  return IslandRole{.place = IslandPlace{.rank = *flags.rank,
                                         .size = flags.world_size,
                                         .store_host = address->host,
                                         .store_port = address->port,
                                         .hosts_store = *flags.rank == 0}};
}

}  // namespace

absl::StatusOr<IslandRole> FindIslandRole(const IslandFlags& flags, const Environment& environment) {
  const Variables variables(environment);
  if (variables.Has(kSupervisedVariable)) return FromVariables(variables);
  const bool launched = variables.Has("RANK") || variables.Has("WORLD_SIZE");
  if (flags.ranks > 0 && !flags.island.empty()) {
    return absl::InvalidArgumentError(
        "--ranks starts all ranks of an island on this host, and --island makes this process one rank; give "
        "one of them");
  }
  if (flags.ranks > 1 && launched) {
    return absl::InvalidArgumentError(
        "--ranks starts ranks itself, and torchrun has started this process as one (RANK, WORLD_SIZE); leave "
        "out --ranks, or start atoll-worker without torchrun");
  }
  if (flags.island.empty() && (flags.rank.has_value() || flags.world_size > 0)) {
    return absl::InvalidArgumentError("--rank and --world-size need --island HOST:PORT, where rank 0 is");
  }
  if (!flags.island.empty()) return FromOptions(flags);
  if (flags.ranks > 1) return IslandRole{.supervises = true};
  if (launched && flags.ranks == 0) return FromVariables(variables);
  return IslandRole{};
}

absl::StatusOr<std::string> DeviceOfRank(const std::string& device, const IslandPlace& place,
                                         uint32_t cuda_devices) {
  if (device == "cpu") return device;
  if (device == "auto" && cuda_devices == 0) return std::string("cpu");
  if (device != "auto" && device != "cuda") {
    return absl::InvalidArgumentError(absl::StrFormat(
        "--device %s: all ranks of a host have the same options, and each takes a device of its own; give "
        "cuda (rank r of this host takes cuda:r), cpu or auto",
        device));
  }
  if (place.local_rank < cuda_devices) return absl::StrCat("cuda:", place.local_rank);
  return absl::InvalidArgumentError(
      absl::StrFormat("rank %d needs device cuda:%d, and this LibTorch sees %d CUDA device(s); start at most "
                      "that many ranks on "
                      "this host, or give --device cpu",
                      place.rank, place.local_rank, cuda_devices));
}

int ThreadsOfRank(int threads, int available, const IslandPlace& place) {
  const int all = threads > 0 ? threads : available;
  return std::max(1, all / static_cast<int>(std::max(place.local_size, 1U)));
}

}  // namespace atl
