#include "tests/integration/crash/judge.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "common/status.h"

namespace atoll {
namespace {

absl::Status JudgeAck(const Promises::Acknowledged& ack, const Recovery& recovery, const SerialModel& model) {
  const auto is_it = [&](const Contribution& c) {
    return c.key.epoch == ack.epoch && c.key.worker == ack.worker && c.key.base == ack.base;
  };
  bool there = false;
  if (ack.base < model.head()) {
    const RoundRecord& record = model.records()[ack.base.value()];
    if (record.epoch != ack.epoch) return absl::OkStatus();  // a restore took the place of its round
    there = std::ranges::any_of(record.contributions, is_it);
  } else {
    there = std::ranges::any_of(recovery.fragments[0].accepted, is_it);
  }
  if (there) return absl::OkStatus();
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
    ATOLL_RETURN_IF_ERROR(JudgeAck(ack, recovery, model));
  }
  return absl::OkStatus();
}

}  // namespace atoll
