#ifndef ATOLL_BENCH_EXCHANGE_SYNTHETIC_MODEL_H_
#define ATOLL_BENCH_EXCHANGE_SYNTHETIC_MODEL_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/exchange/settings.h"
#include "core/manifest.h"

namespace atl {

/// A model that nobody trains, of a given size.
struct SyntheticModel {
  std::string yaml;
  Manifest manifest;
  uint64_t elements = 0;  // of its one fragment
};

/// About `mib` MiB of float32 (at least 4), for `workers` workers.
absl::StatusOr<SyntheticModel> MakeSyntheticModel(uint64_t mib, uint32_t workers, const Recipe& recipe);

/// Values with the look of a pseudo-gradient: normal, of a scale that differs from row to row.
std::vector<float> PseudoGradient(uint64_t elements, uint64_t seed);

/// `values` as the codec's payload.
std::vector<std::byte> EncodedAs(CodecKind codec, const std::vector<float>& values);

}  // namespace atl

#endif  // ATOLL_BENCH_EXCHANGE_SYNTHETIC_MODEL_H_
