#include "tests/integration/crash/judge.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "common/status.h"

namespace atl {
namespace {

/// It counts in the round of its base or, when it came late, in one of the next `staleness_limit`.
absl::Status JudgeAck(const Promises::Acknowledged& ack, const Recovery& recovery, const SerialModel& model,
                      uint64_t staleness_limit) {
  const auto is_it = [&](const Contribution& c) {
    return c.key.epoch == ack.epoch && c.key.worker == ack.worker && c.key.base == ack.base;
  };
  const uint64_t last = ack.base.value() + staleness_limit;
  for (uint64_t base = ack.base.value(); base <= last && base < model.head().value(); ++base) {
    const RoundRecord& record = model.records()[base];
    if (record.epoch != ack.epoch) return absl::OkStatus();  // a restore took the place of its round
    if (std::ranges::any_of(record.contributions, is_it)) return absl::OkStatus();
  }
  const bool open = model.head().value() <= last;
  if (open && std::ranges::any_of(recovery.fragments[0].accepted, is_it)) return absl::OkStatus();
  return absl::DataLossError(absl::StrFormat("lost: the acknowledged contribution of %s on version %d",
                                             ack.worker, ack.base.value()));
}

}  // namespace

absl::Status JudgeRemains(const Promised& promised, const Recovery& recovery,
                          const std::map<std::string, Version>& checkpoints, SerialModel& model) {
  ATOLL_RETURN_IF_ERROR(model.Follow(recovery.rounds, checkpoints, promised.published));
  if (model.head() < promised.head) {
    return absl::DataLossError(
        absl::StrFormat("the head was %d and is %d", promised.head.value(), model.head().value()));
  }
  for (const Promises::Acknowledged& ack : promised.accepted) {
    ATOLL_RETURN_IF_ERROR(JudgeAck(ack, recovery, model, model.run().options.round.staleness_limit));
  }
  return absl::OkStatus();
}

}  // namespace atl
