#include "core/fragment_plan.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_format.h"

namespace atoll {
namespace {

uint64_t RoundUp(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

/// Fragment of each tensor: largest tensor first into the lightest fragment.
std::vector<uint32_t> PackBySize(const Manifest& manifest, uint32_t fragments) {
  std::vector<uint32_t> order(manifest.tensors.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return manifest.tensors[a].elements() > manifest.tensors[b].elements();
  });
  std::vector<uint64_t> load(fragments, 0);
  std::vector<uint32_t> fragment_of(manifest.tensors.size());
  for (const uint32_t tensor : order) {
    const auto lightest = std::min_element(load.begin(), load.end());
    fragment_of[tensor] = static_cast<uint32_t>(lightest - load.begin());
    *lightest += RoundUp(manifest.tensors[tensor].elements(), kSlotAlignment);
  }
  return fragment_of;
}

}  // namespace

absl::StatusOr<std::vector<FragmentLayout>> PlanFragments(const Manifest& manifest, uint32_t fragments) {
  if (fragments == 0 || fragments > manifest.tensors.size()) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "cannot cut a model of %d tensors into %d fragments; a fragment holds whole tensors, at least one",
        manifest.tensors.size(), fragments));
  }
  const std::vector<uint32_t> fragment_of = PackBySize(manifest, fragments);
  std::vector<FragmentLayout> plan(fragments);
  for (uint32_t f = 0; f < fragments; ++f) plan[f].id = FragmentId(f);
  for (uint32_t tensor = 0; tensor < fragment_of.size(); ++tensor) {
    FragmentLayout& layout = plan[fragment_of[tensor]];
    const uint64_t elements = manifest.tensors[tensor].elements();
    layout.slots.push_back({.tensor = tensor,
                            .offset = layout.elements,
                            .elements = elements,
                            .embedding = manifest.tensors[tensor].embedding});
    layout.elements += RoundUp(elements, kSlotAlignment);
  }
  return plan;
}

std::vector<Chunk> MapChunks(const FragmentLayout& fragment, uint32_t shards, uint64_t chunk_elements) {
  const uint64_t size = RoundUp(std::max<uint64_t>(chunk_elements, 1), kChunkAlignment);
  const uint32_t shard_count = std::max(shards, 1u);
  std::vector<Chunk> chunks;
  for (uint64_t begin = 0; begin < fragment.elements; begin += size) {
    const auto index = static_cast<uint32_t>(chunks.size());
    const auto shard = static_cast<uint32_t>((uint64_t{fragment.id.value()} + index) % shard_count);
    chunks.push_back({.index = index,
                      .shard = ShardId(shard),
                      .begin = begin,
                      .end = std::min(begin + size, fragment.elements)});
  }
  return chunks;
}

}  // namespace atoll
