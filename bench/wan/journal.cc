#include "bench/wan/journal.h"

#include <string>

namespace atl {

void Journal::OnInnerStep(const InnerStepResult&, double, Duration compute) {
  const MutexLock lock(&mutex_);
  ++steps_;
  compute_ += compute;
  if (steps_ == 1) WriteLocked({{"event", "step"}});
}

void Journal::OnPulled(FragmentId fragment, Version version, uint64_t wire_bytes, Duration waited,
                       Duration transfer) {
  Write({{"event", "pulled"},
         {"fragment", fragment.value()},
         {"version", version.value()},
         {"bytes", wire_bytes},
         {"waited", ToSeconds(waited)},
         {"transfer", ToSeconds(transfer)}});
}

void Journal::OnPushed(FragmentId fragment, PushResultKind result, uint64_t wire_bytes, Duration exchange) {
  Write({{"event", "pushed"},
         {"fragment", fragment.value()},
         {"counted", result == PushResultKind::kAccepted || result == PushResultKind::kDuplicate},
         {"bytes", wire_bytes},
         {"seconds", ToSeconds(exchange)}});
}

void Journal::OnUsed(FragmentId fragment, Version version, uint64_t steps_since_push) {
  Write({{"event", "used"},
         {"fragment", fragment.value()},
         {"version", version.value()},
         {"age", steps_since_push}});
}

void Journal::OnPushSkipped(FragmentId fragment) {
  Write({{"event", "skipped"}, {"fragment", fragment.value()}});
}

void Journal::OnRound(uint32_t steps, uint64_t, double, Duration duration) {
  Write({{"event", "round"}, {"round_steps", steps}, {"seconds", ToSeconds(duration)}});
}

void Journal::OnRetry(const absl::Status& error, Duration pause) {
  Write({{"event", "retry"}, {"error", error.ToString()}, {"pause", ToSeconds(pause)}});
}

void Journal::Write(nlohmann::json event) {
  const MutexLock lock(&mutex_);
  WriteLocked(std::move(event));
}

void Journal::WriteLocked(nlohmann::json event) {
  event["t"] = ToSeconds(clock_->Now().time_since_epoch());
  event["steps"] = steps_;
  event["compute"] = ToSeconds(compute_);
  const std::string line = event.dump() + "\n";
  std::fwrite(line.data(), 1, line.size(), out_);
  std::fflush(out_);
}

}  // namespace atl
