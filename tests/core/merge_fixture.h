#ifndef ATOLL_TESTS_CORE_MERGE_FIXTURE_H_
#define ATOLL_TESTS_CORE_MERGE_FIXTURE_H_

#include <cstddef>
#include <thread>
#include <vector>

#include "core/block_merger.h"
#include "core/merge_planner.h"
#include "core/payload_stats.h"
#include "tests/core/test_values.h"

namespace atl {

/// Contributions to one round with their payloads, weights and recorded norms.
struct MergeRound {
  std::vector<std::vector<std::byte>> payloads;
  std::vector<MergeInput> inputs;
  FragmentLayout layout;

  /// `codecs` are used in turn; weights are normalised.
  MergeRound(FragmentLayout fragment, const std::vector<std::vector<float>>& deltas,
             const std::vector<double>& weights, const std::vector<CodecKind>& codecs = {CodecKind::kFp32})
      : layout(std::move(fragment)) {
    double sum = 0;
    for (const double weight : weights) sum += weight;
    for (size_t i = 0; i < deltas.size(); ++i) {
      const Codec& codec = CodecFor(codecs[i % codecs.size()]);
      payloads.push_back(Encoded(codec, deltas[i]));
      inputs.push_back({.codec = &codec, .payload = {}, .weight = static_cast<float>(weights[i] / sum)});
      inputs.back().norm = *PayloadNorm(codec, payloads[i], layout.elements);
    }
    for (size_t i = 0; i < deltas.size(); ++i) inputs[i].payload = payloads[i];
  }
  MergeRound(const MergeRound&) = delete;
  MergeRound& operator=(const MergeRound&) = delete;

  /// What the contributions decode to.
  std::vector<std::vector<float>> decoded() const {
    std::vector<std::vector<float>> values;
    for (const MergeInput& input : inputs) {
      values.push_back(Decoded(*input.codec, input.payload, layout.elements));
    }
    return values;
  }
};

/// Calls body(0) .. body(pieces - 1) on so many threads, dealt out in turn.
template <typename Body>
void OnThreads(size_t threads, size_t pieces, const Body& body) {
  std::vector<std::thread> pool;
  for (size_t t = 0; t < threads; ++t) {
    pool.emplace_back([&, t] {
      for (size_t piece = t; piece < pieces; piece += threads) body(piece);
    });
  }
  for (std::thread& thread : pool) thread.join();
}

/// The whole merge, every pass of it on this many threads and in ranges of `range` values.
inline std::vector<float> Merged(const MergeRound& round, const MergeOptions& options, size_t threads = 1,
                                 uint64_t range = uint64_t{1} << 18) {
  MergePlanner planner(options, round.inputs, round.layout);
  while (planner.needs_pass()) {
    OnThreads(threads, planner.pieces(), [&](size_t piece) { planner.Measure(piece); });
    planner.EndPass();
  }
  const uint64_t elements = round.layout.elements;
  std::vector<float> merged(elements);
  OnThreads(threads, (elements + range - 1) / range, [&](size_t piece) {
    const uint64_t first = piece * range;
    MergeRange(planner.plan(), first, std::span(merged).subspan(first, std::min(range, elements - first)));
  });
  return merged;
}

/// Tensors of these sizes, padded as PlanFragments pads them; the first is an embedding when there are
/// several.
inline FragmentLayout LayoutOf(const std::vector<uint64_t>& sizes) {
  FragmentLayout layout;
  for (const uint64_t size : sizes) {
    layout.slots.push_back({.tensor = static_cast<uint32_t>(layout.slots.size()),
                            .offset = layout.elements,
                            .elements = size,
                            .embedding = layout.slots.empty() && sizes.size() > 1});
    layout.elements += (size + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment;
  }
  return layout;
}

/// Random values in the tensors, zeros between them.
inline std::vector<float> RandomDelta(const FragmentLayout& layout, uint64_t seed, float scale = 1e-3f) {
  const std::vector<float> random = RandomValues(layout.elements, seed, scale);
  std::vector<float> values(layout.elements);
  for (const TensorSlot& slot : layout.slots) {
    for (uint64_t i = 0; i < slot.elements; ++i) values[slot.offset + i] = random[slot.offset + i];
  }
  return values;
}

}  // namespace atl

#endif  // ATOLL_TESTS_CORE_MERGE_FIXTURE_H_
