#ifndef ATOLL_CORE_MIXTURE_ORDER_H_
#define ATOLL_CORE_MIXTURE_ORDER_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/partition.h"

namespace atl {

/// The largest sum of a mixture's weights, and so the most positions of a block.
inline constexpr uint32_t kMaxMixtureWeights = 1u << 16;

/// Whole weights of the same ratio, without a common divisor, in the order of the texts. Each text is a
/// positive decimal number such as "0.7", "30" or "1e-3". If their exact ratio needs a sum above
/// kMaxMixtureWeights, the sum is that and the weights are the nearest by largest remainder. InvalidArgument
/// naming the weight that is no positive number, or so small that its whole weight is 0.
absl::StatusOr<std::vector<uint32_t>> WholeWeights(std::span<const std::string> texts);

/// The order in which a run visits the parts of a mixture (docs/reference/data_order.md, "Mixtures"): blocks
/// of as many positions as the sum of the weights, of which each part has exactly its weight, in a
/// pseudo-random order. Stateless, O(log parts) per position, the same on every machine. Immutable and
/// thread-safe.
class MixtureOrder {
 public:
  struct Place {
    uint32_t part = 0;
    uint64_t position = 0;  // in the part's own order, pass after pass
    friend bool operator==(const Place&, const Place&) = default;
  };

  /// At least one weight, all above 0, with a sum of at most kMaxMixtureWeights.
  MixtureOrder(std::span<const uint32_t> weights, uint64_t seed);

  /// The sum of the weights.
  uint64_t block() const { return starts_.back(); }
  /// What stands at this position of the run.
  Place At(uint64_t position) const;

  /// The seed of the order inside a part.
  static uint64_t PartSeed(uint64_t seed, uint32_t part);

 private:
  std::vector<uint64_t> starts_;  // first slot of each part, and the number of slots
  SampleOrder slots_;
};

}  // namespace atl

#endif  // ATOLL_CORE_MIXTURE_ORDER_H_
