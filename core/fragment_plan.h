#ifndef ATOLL_CORE_FRAGMENT_PLAN_H_
#define ATOLL_CORE_FRAGMENT_PLAN_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/ids.h"
#include "core/manifest.h"
#include "core/run_options.h"

namespace atl {

/// Every tensor starts at a multiple of this many elements in its fragment's flat vector, so that a codec's
/// block never straddles two tensors. The gap is zero in every vector: parameters, momentum, pseudo-gradient.
inline constexpr uint64_t kSlotAlignment = 256;

/// Where one tensor lies in its fragment's flat vector. Units: float32 elements.
struct TensorSlot {
  uint32_t tensor = 0;  // index into Manifest::tensors
  uint64_t offset = 0;  // multiple of kSlotAlignment
  uint64_t elements = 0;
  bool embedding = false;  // TensorSpec::embedding
  bool averaged = false;   // TensorSpec::averaged
};

/// One fragment's flat vector: `elements` float32 values, padding included, a multiple of kSlotAlignment.
struct FragmentLayout {
  FragmentId id = {};
  std::vector<TensorSlot> slots = {};
  uint64_t elements = 0;
};

/// Elements [begin, end) of a fragment's flat vector, multiples of kSlotAlignment.
struct ElementRange {
  uint64_t begin = 0;
  uint64_t end = 0;
  friend bool operator==(const ElementRange&, const ElementRange&) = default;
};

/// The averaged tensors of a fragment, each with the gap behind it; ascending, neighbours joined.
std::vector<ElementRange> AveragedRanges(const FragmentLayout& layout);

/// Splits the manifest into `fragments` fragments of whole tensors (order kept inside a fragment). With one
/// fragment it holds all tensors in manifest order. With several it goes by the pattern, deterministically:
///   packed   tensors are bin-packed by size: largest first, ties by manifest order, into the lightest
///            fragment, ties to the lowest id
///   strided  fragment i has the transformer blocks i, i + P, i + 2P, ... (Streaming DiLoCo, arXiv
///            2501.18512), a block being what has the same first number in its dotted name
///            ("transformer.h.3.ln_1.weight": 3); tensors without one are then bin-packed
/// InvalidArgument when fragments is 0 or above the number of tensors (strided: of blocks).
absl::StatusOr<std::vector<FragmentLayout>> PlanFragments(const Manifest& manifest, uint32_t fragments,
                                                          FragmentPattern pattern = FragmentPattern::kPacked);

/// A contiguous piece of a fragment's flat vector, owned by one shard. Units: float32 elements.
struct Chunk {
  uint32_t index = 0;
  ShardId shard = {};
  uint64_t begin = 0;
  uint64_t end = 0;
};

/// Every chunk boundary (but the fragment's end) is a multiple of this, which every codec's block divides.
inline constexpr uint64_t kChunkAlignment = 4096;

/// Cuts a fragment into chunks of `chunk_elements` (rounded up to kChunkAlignment; the last one shorter) and
/// deals them to shards round-robin, starting at shard (fragment id mod shards), so that every shard works on
/// every round.
std::vector<Chunk> MapChunks(const FragmentLayout& fragment, uint32_t shards, uint64_t chunk_elements);

}  // namespace atl

#endif  // ATOLL_CORE_FRAGMENT_PLAN_H_
