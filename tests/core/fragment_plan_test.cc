#include "core/fragment_plan.h"

#include <algorithm>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace atl {
namespace {

Manifest RandomManifest(size_t tensors, uint32_t seed) {
  std::mt19937 engine(seed);
  Manifest manifest;
  for (size_t i = 0; i < tensors; ++i) {
    manifest.tensors.push_back(
        {.name = absl::StrCat("t", i), .shape = {1 + static_cast<int64_t>(engine() % 5000)}});
  }
  return manifest;
}

TEST(PlanFragments, OneFragmentHoldsAllInOrder) {
  const Manifest manifest = {
      {{.name = "a", .shape = {3, 100}}, {.name = "b"}, {.name = "c", .shape = {256}}}};
  const auto plan = PlanFragments(manifest, 1);
  ASSERT_TRUE(plan.ok());
  ASSERT_EQ(plan->size(), 1u);
  const FragmentLayout& layout = plan->front();
  EXPECT_EQ(layout.elements, 512u + 256 + 256);
  ASSERT_EQ(layout.slots.size(), 3u);
  EXPECT_EQ(layout.slots[1].tensor, 1u);
  EXPECT_EQ(layout.slots[1].offset, 512u);
  EXPECT_EQ(layout.slots[1].elements, 1u);
  EXPECT_EQ(layout.slots[2].offset, 768u);
}

TEST(PlanFragments, EveryTensorIsSomewhereOnceAndLoadsAreEven) {
  for (const uint32_t fragments : {2u, 3u, 8u, 40u}) {
    const Manifest manifest = RandomManifest(40, fragments);
    const auto plan = PlanFragments(manifest, fragments);
    ASSERT_TRUE(plan.ok());
    std::vector<int> seen(40);
    uint64_t lightest = UINT64_MAX, heaviest = 0;
    for (uint32_t f = 0; f < fragments; ++f) {
      const FragmentLayout& layout = (*plan)[f];
      EXPECT_EQ(layout.id, FragmentId(f));
      EXPECT_FALSE(layout.slots.empty());
      uint64_t end = 0;
      for (const TensorSlot& slot : layout.slots) {
        ++seen[slot.tensor];
        EXPECT_EQ(slot.offset % kSlotAlignment, 0u);
        EXPECT_GE(slot.offset, end);
        EXPECT_EQ(slot.elements, manifest.tensors[slot.tensor].elements());
        end = slot.offset + slot.elements;
      }
      EXPECT_EQ(layout.elements, (end + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment);
      lightest = std::min(lightest, layout.elements);
      heaviest = std::max(heaviest, layout.elements);
    }
    EXPECT_THAT(seen, testing::Each(1));
    EXPECT_LE(heaviest - lightest, 5120u) << "more than the largest tensor apart";
  }
}

TEST(PlanFragments, LargestFirstTiesByOrder) {
  const Manifest manifest = {
      {{.name = "a", .shape = {256}}, {.name = "b", .shape = {1024}}, {.name = "c", .shape = {256}}}};
  const auto plan = PlanFragments(manifest, 2);
  ASSERT_TRUE(plan.ok());
  ASSERT_EQ((*plan)[0].slots.size(), 1u);
  EXPECT_EQ((*plan)[0].slots[0].tensor, 1u);
  ASSERT_EQ((*plan)[1].slots.size(), 2u);
  EXPECT_EQ((*plan)[1].slots[0].tensor, 0u);
}

TEST(PlanFragments, RejectsMoreFragmentsThanTensors) {
  EXPECT_EQ(PlanFragments(RandomManifest(3, 1), 4).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(PlanFragments(RandomManifest(3, 1), 0).status().code(), absl::StatusCode::kInvalidArgument);
}

Manifest Blocks(int blocks) {
  Manifest manifest;
  manifest.tensors.push_back({.name = "transformer.wte.weight", .shape = {4096}, .embedding = true});
  for (int i = 0; i < blocks; ++i) {
    manifest.tensors.push_back({.name = absl::StrCat("transformer.h.", i, ".ln_1.weight"), .shape = {16}});
    manifest.tensors.push_back({.name = absl::StrCat("transformer.h.", i, ".mlp.weight"), .shape = {1024}});
  }
  manifest.tensors.push_back({.name = "transformer.ln_f.weight", .shape = {16}});
  return manifest;
}

TEST(PlanFragments, StridedFragmentsHaveEveryPthBlock) {
  const auto plan = PlanFragments(Blocks(5), 2, FragmentPattern::kStrided);
  ASSERT_TRUE(plan.ok()) << plan.status();
  std::vector<std::vector<uint32_t>> tensors(2);
  for (size_t f = 0; f < 2; ++f) {
    for (const TensorSlot& slot : (*plan)[f].slots) tensors[f].push_back(slot.tensor);
  }
  // Blocks 0, 2, 4 and 1, 3; then the embedding to the lighter one, the last norm to what is lighter by then.
  EXPECT_THAT(tensors[0], ::testing::ElementsAre(1, 2, 5, 6, 9, 10, 11));
  EXPECT_THAT(tensors[1], ::testing::ElementsAre(0, 3, 4, 7, 8));
}

TEST(PlanFragments, StridedFragmentsNeedABlockEach) {
  EXPECT_TRUE(PlanFragments(Blocks(4), 4, FragmentPattern::kStrided).ok());
  const auto few = PlanFragments(Blocks(3), 4, FragmentPattern::kStrided);
  EXPECT_EQ(few.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(few.status().message(), ::testing::HasSubstr("too few for 4 strided fragments"));
  EXPECT_TRUE(PlanFragments(RandomManifest(3, 1), 1, FragmentPattern::kStrided).ok()) << "one has them all";
}

TEST(MapChunks, CoversTheFragmentAndUsesEveryShard) {
  const FragmentLayout layout{.id = FragmentId(5), .slots = {}, .elements = 10 * 8192 + 256};
  const std::vector<Chunk> chunks = MapChunks(layout, 4, 8000);  // rounded up to 8192
  ASSERT_EQ(chunks.size(), 11u);
  uint64_t end = 0;
  for (const Chunk& chunk : chunks) {
    EXPECT_EQ(chunk.begin, end);
    EXPECT_EQ(chunk.begin % kChunkAlignment, 0u);
    EXPECT_EQ(chunk.shard, ShardId((5 + chunk.index) % 4));
    end = chunk.end;
  }
  EXPECT_EQ(end, layout.elements);
  EXPECT_EQ(chunks.back().end - chunks.back().begin, 256u);
}

TEST(MapChunks, SmallestChunkIsTheAlignment) {
  const FragmentLayout layout{.id = FragmentId(0), .slots = {}, .elements = 4096};
  EXPECT_EQ(MapChunks(layout, 4, 0).size(), 1u);
  EXPECT_TRUE(MapChunks({}, 4, 4096).empty());
}

TEST(AveragedRanges, AreThoseOfTheTensorsWithTheGapsBehindThem) {
  Manifest manifest;
  manifest.tensors = {{.name = "w", .shape = {300}},
                      {.name = "mean", .shape = {3}, .averaged = true},
                      {.name = "variance", .shape = {257}, .averaged = true},
                      {.name = "b", .shape = {3}},
                      {.name = "scale", .shape = {}, .averaged = true}};
  const auto plan = PlanFragments(manifest, 1);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const std::vector<ElementRange> expected = {{512, 512 + 256 + 512}, {1536, 1792}};
  EXPECT_EQ(AveragedRanges(plan->front()), expected);
  EXPECT_EQ(plan->front().elements, 1792u);
  manifest.tensors = {{.name = "w", .shape = {300}}};
  EXPECT_TRUE(AveragedRanges(PlanFragments(manifest, 1)->front()).empty());
}

TEST(AveragedRanges, AreInTheFragmentOfTheirBlock) {
  Manifest manifest;
  for (const char* const name : {"layers.0.w", "layers.1.w", "layers.2.w"}) {
    manifest.tensors.push_back({.name = name, .shape = {512}});
  }
  manifest.tensors.push_back({.name = "layers.1.bn.running_mean", .shape = {4}, .averaged = true});
  const auto plan = PlanFragments(manifest, 2, FragmentPattern::kStrided);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE(AveragedRanges((*plan)[0]).empty());
  EXPECT_EQ(AveragedRanges((*plan)[1]), (std::vector<ElementRange>{{512, 768}}));
}

}  // namespace
}  // namespace atl
