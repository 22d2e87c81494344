#include "core/fragment_plan.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace atl {
namespace {

uint64_t RoundUp(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

/// Which fragment each tensor is in, filled step by step.
class Dealing {
 public:
  Dealing(const Manifest& manifest, uint32_t fragments)
      : manifest_(manifest), load_(fragments, 0), fragment_of_(manifest.tensors.size()) {}

  void Put(uint32_t tensor, uint32_t fragment) {
    fragment_of_[tensor] = fragment;
    load_[fragment] += RoundUp(manifest_.tensors[tensor].elements(), kSlotAlignment);
  }
  /// Largest tensor first into the lightest fragment. `tensors` is in manifest order.
  void PackBySize(std::vector<uint32_t> tensors) {
    std::stable_sort(tensors.begin(), tensors.end(), [&](uint32_t a, uint32_t b) {
      return manifest_.tensors[a].elements() > manifest_.tensors[b].elements();
    });
    for (const uint32_t tensor : tensors) {
      const auto lightest = std::min_element(load_.begin(), load_.end());
      Put(tensor, static_cast<uint32_t>(lightest - load_.begin()));
    }
  }
  std::vector<uint32_t> fragment_of() && { return std::move(fragment_of_); }

 private:
  const Manifest& manifest_;
  std::vector<uint64_t> load_;
  std::vector<uint32_t> fragment_of_;
};

/// The first component of a dotted name that is a number.
std::optional<uint32_t> BlockOf(const std::string& name) {
  for (const std::string& part : std::vector<std::string>(absl::StrSplit(name, '.'))) {
    uint32_t block = 0;
    const bool digits = !part.empty() && std::all_of(part.begin(), part.end(),
                                                     [](unsigned char c) { return absl::ascii_isdigit(c); });
    if (digits && absl::SimpleAtoi(part, &block)) return block;
  }
  return std::nullopt;
}

absl::StatusOr<std::vector<uint32_t>> EncodeAll(const Manifest& manifest, uint32_t fragments) {
  std::vector<uint32_t> all(manifest.tensors.size());
  std::iota(all.begin(), all.end(), 0u);
  Dealing dealing(manifest, fragments);
  dealing.PackBySize(std::move(all));
  return std::move(dealing).fragment_of();
}

absl::StatusOr<std::vector<uint32_t>> Stride(const Manifest& manifest, uint32_t fragments) {
  Dealing dealing(manifest, fragments);
  std::vector<uint32_t> outside;
  std::set<uint32_t> used;
  for (uint32_t tensor = 0; tensor < manifest.tensors.size(); ++tensor) {
    const std::optional<uint32_t> block = BlockOf(manifest.tensors[tensor].name);
    if (block.has_value()) {
      dealing.Put(tensor, *block % fragments);
      used.insert(*block % fragments);
    } else {
      outside.push_back(tensor);
    }
  }
  if (used.size() < fragments) {
    return absl::InvalidArgumentError(
        absl::StrFormat("the model's blocks are too few for %d strided fragments: only %d would have one; "
                        "lower sync.fragments, or set sync.pattern to packed",
                        fragments, used.size()));
  }
  dealing.PackBySize(std::move(outside));
  return std::move(dealing).fragment_of();
}

}  // namespace

absl::StatusOr<std::vector<FragmentLayout>> PlanFragments(const Manifest& manifest, uint32_t fragments,
                                                          FragmentPattern pattern) {
  if (fragments == 0 || fragments > manifest.tensors.size()) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "cannot cut a model of %d tensors into %d fragments; a fragment holds whole tensors, at least one",
        manifest.tensors.size(), fragments));
  }
  const bool strides = pattern == FragmentPattern::kStrided && fragments > 1;
  const auto dealt = strides ? Stride(manifest, fragments) : EncodeAll(manifest, fragments);
  if (!dealt.ok()) return dealt.status();
  const std::vector<uint32_t>& fragment_of = *dealt;
  std::vector<FragmentLayout> plan(fragments);
  for (uint32_t f = 0; f < fragments; ++f) plan[f].id = FragmentId(f);
  for (uint32_t tensor = 0; tensor < fragment_of.size(); ++tensor) {
    FragmentLayout& layout = plan[fragment_of[tensor]];
    const uint64_t elements = manifest.tensors[tensor].elements();
    layout.slots.push_back({.tensor = tensor,
                            .offset = layout.elements,
                            .elements = elements,
                            .embedding = manifest.tensors[tensor].embedding,
                            .averaged = manifest.tensors[tensor].averaged});
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

}  // namespace atl
