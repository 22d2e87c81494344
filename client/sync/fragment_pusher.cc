#include "client/sync/fragment_pusher.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/status.h"

namespace atl {

absl::Status FragmentPusher::PushDue() {
  FragmentSchedule& schedule = *state_.schedule;
  // When channels are short, the one that has waited longest goes first.
  std::vector<StreamedFragment*> order;
  for (const auto& fragment : state_.fragments) {
    if (!fragment->left_behind()) order.push_back(fragment.get());
  }
  std::ranges::stable_sort(order, {}, [&](const auto* one) { return schedule.DueIn(one->index()); });
  for (StreamedFragment* const fragment : order) {
    const bool due = schedule.Due(fragment->index());
    if (fragment->exchange->away()) {
      if (state_.leaving ? due : schedule.TooLate(fragment->index())) Skip(*fragment);
      continue;
    }
    // Pushed now, it could not be pushed again at the very end of the budget.
    const uint64_t left = fragment->StepsToBudget(state_.run.tokens_per_step());
    const bool waits_for_end = left > 0 && left <= state_.run.sync.delay_steps;
    if (left == 0 || (due && !waits_for_end)) ATOLL_RETURN_IF_ERROR(Push(*fragment).status());
  }
  return absl::OkStatus();
}

void FragmentPusher::Skip(StreamedFragment& fragment) {
  state_.schedule->Skipped(fragment.index());
  fragment.pushed_to_leave = state_.leaving;
  context_.observer->OnPushSkipped(fragment.base.layout.id);
  context_.log.Debug("a push is skipped: the last one of the fragment is unanswered",
                     {{"fragment", fragment.index()}, {"base", fragment.base.version->value()}});
}

absl::StatusOr<bool> FragmentPusher::Push(StreamedFragment& fragment) {
  // Pushed on this base by an earlier life, and no channel was free until now: only its answer is missing.
  if (fragment.encoder->IsDone(*fragment.base.version)) return AskForAnswer(fragment);
  if (fragment.window.steps == 0 || !HasRoom()) return false;
  ATOLL_RETURN_IF_ERROR(Measure(fragment));
  const PushHeader claims =
      ClaimsOf(fragment.base, fragment.window, state_.data.partition(), replica_->samples_consumed());
  const bool captured =
      fragment.index() == 0 && CaptureRound(resume_state_, session_->member().epoch, *fragment.base.version,
                                            state_.committed_tokens, *replica_, context_);
  if (!fragment.exchange->StartPush(claims, captured)) return false;
  NotePushed(fragment, claims);
  return true;
}

void FragmentPusher::NotePushed(StreamedFragment& fragment, const PushHeader& claims) {
  state_.schedule->Pushed(fragment.index());
  fragment.generation = state_.generation;
  fragment.pushed_to_leave = state_.leaving;
  if (fragment.index() == 0) {
    state_.first_pushed_at = state_.schedule->now();
    state_.pushed_position = claims.samples_consumed;
    const MonoTime now = context_.clock->Now();
    context_.observer->OnRound(fragment.window.steps, fragment.window.tokens, fragment.window.mean_loss(),
                               now - std::exchange(state_.round_began, now));
  }
  fragment.window = InnerRound();
}

bool FragmentPusher::HasRoom() const {
  // Those that only wait for the others do not count: two workers, each with all its pushes waiting for the
  // other's next one, would wait for ever.
  const auto sending = std::ranges::count_if(
      state_.fragments, [](const auto& fragment) { return fragment->exchange->unacknowledged(); });
  return std::cmp_less(sending, state_.run.sync.max_in_flight) && runner_->HasFreeChannel();
}

bool FragmentPusher::AskForAnswer(StreamedFragment& fragment) {
  // All steps of this life are newer than that push, and began at the base.
  if (state_.run.sync.answer == AnswerUse::kRebase) fragment.local_at_push = fragment.base.values;
  return fragment.exchange->StartPull(fragment.base.version);
}

absl::Status FragmentPusher::Measure(StreamedFragment& fragment) {
  const Spending spending(context_.time, TimeUse::kEncode);
  if (state_.run.sync.answer == AnswerUse::kRebase) {
    fragment.local_at_push.resize(fragment.base.layout.elements);
    ATOLL_RETURN_IF_ERROR(replica_->ReadFragment(fragment.base.layout, fragment.local_at_push));
  }
  return fragment.encoder->Measure(fragment.base, *replica_, fragment.exchange->buffer());
}

}  // namespace atl
