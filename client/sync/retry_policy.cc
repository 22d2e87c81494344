#include "client/sync/retry_policy.h"

#include <algorithm>

#include "client/sync/rejection.h"
#include "common/human.h"

namespace atl {

bool RetryPolicy::Pause(const absl::Status& error, const std::string& what) {
  const MonoTime now = context_.clock->Now();
  const auto hint = RetryDelayOf(error);
  const Duration pause = hint.has_value() ? backoff_.NextAtLeast(*hint) : backoff_.Next();
  const bool first = !waiting_since_.has_value();
  if (first) waiting_since_ = now;
  if (first || now - last_said_ >= options_.log_every) {
    last_said_ = now;
    Say(error, what, pause);
  }
  const std::string waiting_for = "the coordinator, " + what + ": " + std::string(error.message());
  // One that refuses is there: its heartbeats say nothing of this call.
  const bool away = RejectionReasonOf(error) == RejectionReason::kNone &&
                    (absl::IsUnavailable(error) || absl::IsDeadlineExceeded(error));
  if (away) {
    context_.worker_status->AwaitCoordinator(waiting_for);
  } else {
    context_.worker_status->Update([&](ProgressReport& progress) { progress.waiting_for = waiting_for; });
  }
  context_.observer->OnRetry(error, pause);
  const Spending spending(context_.time, TimeUse::kWait);
  const bool slept = context_.sleeper->SleepFor(pause);
  const Duration waited = context_.clock->Now() - now;
  context_.observer->OnWaited(waited);
  return slept;
}

void RetryPolicy::Say(const absl::Status& error, const std::string& what, Duration pause) {
  LogFields fields = {{"to", what}, {"next_try_in", HumanDuration(pause)}, {"error", Explain(error)}};
  const Duration waited = context_.clock->Now() - *waiting_since_;
  if (waited >= Seconds(1)) fields.emplace_back("waited", HumanDuration(waited));
  if (hopeless_since_.has_value()) {
    const Duration left = *hopeless_since_ + *options_.give_up_after - context_.clock->Now();
    fields.emplace_back("gives_up_in", HumanDuration(std::max(left, Duration::zero())));
    context_.log.Warning("waiting for the coordinator; the failure looks permanent", fields);
    return;
  }
  context_.log.Warning("waiting for the coordinator, will keep trying", fields);
}

Duration RetryPolicy::waited() const {
  return waiting_since_.has_value() ? context_.clock->Now() - *waiting_since_ : Duration(0);
}

bool RetryPolicy::GivesUp(const absl::Status& error) {
  if (reached_ || !options_.give_up_after.has_value() || !LooksPermanent(error)) {
    hopeless_since_.reset();
    return false;
  }
  const MonoTime now = context_.clock->Now();
  if (!hopeless_since_.has_value()) hopeless_since_ = now;
  return now - *hopeless_since_ >= *options_.give_up_after;
}

void RetryPolicy::Over() {
  if (!waiting_since_.has_value()) return;
  context_.log.Info("the coordinator answers again",
                    {{"after", HumanDuration(context_.clock->Now() - *waiting_since_)}});
  waiting_since_.reset();
  backoff_.Reset();
  context_.worker_status->Update([](ProgressReport& progress) { progress.waiting_for.clear(); });
}

}  // namespace atl
