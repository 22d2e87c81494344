#include "common/rejection_reason.h"

#include <array>

namespace atl {
namespace {

// In the order of the enumeration.
constexpr std::array<std::string_view, static_cast<size_t>(RejectionReason::kShuttingDown) + 1> kNames = {
    "",
    "PROTOCOL_MISMATCH",
    "WRONG_RUN",
    "WRONG_EPOCH",
    "SUPERSEDED",
    "NOT_A_MEMBER",
    "NAME_TAKEN",
    "BANNED",
    "MANIFEST_MISMATCH",
    "DATASET_MISMATCH",
    "STALE_BASE",
    "UNKNOWN_BASE",
    "WRONG_CODEC",
    "WRONG_SIZE",
    "WRONG_FRAGMENT",
    "BAD_CHUNK",
    "NOT_FINITE",
    "ALREADY_PUSHED",
    "NOT_SEEDED",
    "OVER_BUDGET",
    "STORAGE_FULL",
    "STORAGE_FAILING",
    "SHUTTING_DOWN",
};
static_assert(!kNames.back().empty(), "every reason has a name");

}  // namespace

std::string_view RejectionReasonName(RejectionReason reason) {
  const auto index = static_cast<size_t>(reason);
  return index < kNames.size() ? kNames[index] : std::string_view();
}

RejectionReason ParseRejectionReason(std::string_view name) {
  for (size_t i = 1; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<RejectionReason>(i);
  }
  return RejectionReason::kNone;
}

}  // namespace atl
