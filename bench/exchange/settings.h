#ifndef ATOLL_BENCH_EXCHANGE_SETTINGS_H_
#define ATOLL_BENCH_EXCHANGE_SETTINGS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/run_options.h"

namespace atl {

/// How a round's vectors travel.
struct Recipe {
  CodecKind push = CodecKind::kFp32;
  CodecKind pull = CodecKind::kFp32;
  std::optional<CodecKind> delta = std::nullopt;  // who has the version before gets the difference in it
  bool zstd = false;
  std::string name;  // as it was asked for: "e3m0:bf16+zstd"

  /// How a worker's pull travels, once it has a version.
  CodecKind down() const { return delta.value_or(pull); }
};

/// Where the coordinator keeps what it acknowledges.
enum class StoreKind { kDisk, kMemory };

struct ExchangeSettings {
  std::vector<uint32_t> workers = {1, 2, 4};
  uint64_t mib = 256;  // of float32 parameters
  std::vector<Recipe> recipes;
  std::vector<StoreKind> stores = {StoreKind::kMemory, StoreKind::kDisk};
  int rounds = 5;          // measured, after a first unmeasured one
  double compute_s = 2;    // the timer in place of computing: what the coordinator writes behind a version is
                           // written meanwhile, as in a run
  std::string program;     // atoll-coordinator
  std::string self;        // this program
  std::string dir;         // on a disk
  std::string memory_dir;  // in memory
  std::string python;      // with torch; empty: no gloo
  std::string gloo_script;
  std::string json;  // file; empty: none
};

}  // namespace atl

#endif  // ATOLL_BENCH_EXCHANGE_SETTINGS_H_
