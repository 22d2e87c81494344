#ifndef ATOLL_COMMON_PLANTED_DEFECT_H_
#define ATOLL_COMMON_PLANTED_DEFECT_H_

#include <array>
#include <cstdint>
#include <string_view>

namespace atl {

/// Defects that atoll-simulate-defects turns on, one at a time, to show that a simulation finds them
/// (docs/internals/simulation.md names the invariant that each one breaks).
enum class PlantedDefect : uint8_t {
  kNone,
  kAcknowledgesTooEarly,
  kLosesMomentum,
  kForgetsToReplay,
  kSumsByArrival,
  kCountsTwice,
  kLeavesOneOut,
  kTakesNonFinite,
  kPublishesTooEarly,
  kTrustsClaims,
  kIgnoresDeadline,
  kWaitsForTheDead,
  kIgnoresBudget,
  kLeaksMemory,
  kSupersedesItself,
};

inline constexpr std::array<std::string_view, 15> kPlantedDefectNames = {"none",
                                                                         "acknowledges-too-early",
                                                                         "loses-momentum",
                                                                         "forgets-to-replay",
                                                                         "sums-by-arrival",
                                                                         "counts-twice",
                                                                         "leaves-one-out",
                                                                         "takes-non-finite",
                                                                         "publishes-too-early",
                                                                         "trusts-claims",
                                                                         "ignores-deadline",
                                                                         "waits-for-the-dead",
                                                                         "ignores-budget",
                                                                         "leaks-memory",
                                                                         "supersedes-itself"};

#ifdef ATOLL_PLANTED_DEFECTS
/// Set before any thread runs.
inline PlantedDefect planted_defect = PlantedDefect::kNone;
inline bool Planted(PlantedDefect defect) { return planted_defect == defect; }
#else
/// Constant in every program that users run: the compiler removes the defect.
constexpr bool Planted(PlantedDefect) { return false; }
#endif

}  // namespace atl

#endif  // ATOLL_COMMON_PLANTED_DEFECT_H_
