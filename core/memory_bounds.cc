#include "core/memory_bounds.h"

#include <algorithm>

#include "common/status.h"
#include "core/fragment_plan.h"
#include "core/model_check.h"

namespace atl {
namespace {

constexpr uint64_t kMebibyte = uint64_t{1} << 20;

// The rest of the limit is left: for the page cache, for malloc's fragments, for what comes between two looks
// at the connections.
constexpr uint64_t kRoomPart = 3;
constexpr uint64_t kRoomParts = 4;
constexpr uint64_t kLeastForStrangers = 128 * kMebibyte;
// More buys nothing: every bound is above what an honest client needs.
constexpr uint64_t kMostForStrangers = 2048 * kMebibyte;
constexpr uint64_t kRecommendedForStrangers = 192 * kMebibyte;
constexpr uint64_t kRoundedTo = 256 * kMebibyte;

// What gRPC 1.51 and the kernel hold of each, measured (docs/internals/architecture.md).
constexpr uint64_t kBytesOfConnection = 48 << 10;
constexpr uint64_t kBytesOfStream = 20 << 10;

constexpr size_t kMostConnections = 8192;

}  // namespace

absl::StatusOr<CoordinatorMemory> PlanCoordinatorMemory(const RunOptions& run) {
  ATOLL_ASSIGN_OR_RETURN(const auto layouts, LayOutModel(run));
  uint64_t elements = 0;
  uint64_t largest = 0;
  for (const FragmentLayout& fragment : layouts) {
    elements += fragment.elements;
    largest = std::max(largest, fragment.elements);
  }
  return PlanCoordinatorMemory(MemoryPlanInputOf(run, elements, largest));
}

MemoryBounds BoundsWithin(uint64_t limit, const CoordinatorMemory& run) {
  MemoryBounds bounds{.limit = limit, .run = run.peak()};
  const uint64_t room = limit > bounds.run ? limit - bounds.run : 0;
  bounds.strangers = std::clamp(room / kRoomParts * kRoomPart, kLeastForStrangers, kMostForStrangers);
  // A half is for bytes, a quarter for connections, a quarter for streams. A byte on the wire takes up to a
  // quarter more than itself.
  const uint64_t bytes = bounds.strangers / 2;
  // gRPC counts its connections and streams there too. At the bound it ends connections and calls at random,
  // honest ones among them: the others have to be reached first.
  bounds.buffers = run.streams + bounds.strangers;
  bounds.silent_bytes = run.streams + bytes * 2 / 5;
  bounds.held_bytes = run.streams + bytes * 2 / 5;
  bounds.connections = std::min<uint64_t>(kMostConnections, bounds.strangers / 4 / kBytesOfConnection);
  bounds.open_streams = bounds.strangers / 4 / kBytesOfStream;
  return bounds;
}

uint64_t RecommendedMemoryLimit(const CoordinatorMemory& run) {
  const uint64_t least =
      std::max(run.peak() + kRecommendedForStrangers / kRoomPart * kRoomParts, run.worst());
  return (least + kRoundedTo - 1) / kRoundedTo * kRoundedTo;
}

}  // namespace atl
