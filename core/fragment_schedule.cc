#include "core/fragment_schedule.h"

#include <algorithm>

namespace atl {

FragmentSchedule::FragmentSchedule(uint32_t steps, uint32_t fragments, uint32_t delay)
    : delay_(delay), fragments_(std::max(fragments, 1u)), steps_(Held(steps)), next_steps_(steps_) {
  const auto count = static_cast<int64_t>(fragments_.size());
  for (int64_t p = 0; p < count; ++p) {
    int64_t& due = fragments_[static_cast<size_t>(p)].due;
    due = (p + 1) * int64_t{steps_} / count - int64_t{delay_};
    if (due < 1) due += steps_;
  }
}

uint32_t FragmentSchedule::Held(uint32_t steps) const {
  return std::max({steps, delay_ + 1, static_cast<uint32_t>(fragments_.size())});
}

void FragmentSchedule::SetSteps(uint32_t steps) { next_steps_ = Held(steps); }

void FragmentSchedule::Pushed(uint32_t fragment) {
  Fragment& one = fragments_[fragment];
  one.pushed = std::min(one.due, cycle());  // a delayed one does not move the cycle
  one.pushed_at = now_;
  one.set_back_at = set_back_;
  one.unanswered = true;
  if (fragment == 0 && next_steps_ != steps_) {
    steps_ = next_steps_;
    // The others follow evenly spread over the new cycle, wherever they were.
    const auto count = static_cast<int64_t>(fragments_.size());
    for (int64_t p = 1; p < count; ++p) {
      fragments_[static_cast<size_t>(p)].due = cycle() + p * int64_t{steps_} / count;
    }
  }
  one.due = one.pushed + steps_;
}

void FragmentSchedule::Skipped(uint32_t fragment) { fragments_[fragment].due += steps_; }

bool FragmentSchedule::Usable(uint32_t fragment) const {
  const Fragment& one = fragments_[fragment];
  return !one.unanswered || now_ >= one.pushed_at + delay_;
}

uint64_t FragmentSchedule::Used(uint32_t fragment, uint64_t waited) {
  Fragment& one = fragments_[fragment];
  if (!one.unanswered) return 0;
  one.unanswered = false;
  const uint64_t age = now_ - one.pushed_at;
  const int64_t late = static_cast<int64_t>(age) - int64_t{delay_} - (set_back_ - one.set_back_at);
  late_[answers_++ % kInARow] =
      std::clamp<int64_t>(late, 0, static_cast<int64_t>(std::min<uint64_t>(waited, age)));
  set_back_ += *std::ranges::min_element(late_);
  // What was passed over while the answer was missing may lie ahead again.
  while (one.due - int64_t{steps_} > std::max(cycle(), one.pushed)) one.due -= steps_;
  return age;
}

void FragmentSchedule::CameLate(uint32_t fragment, uint64_t age) {
  const int64_t left =
      int64_t{steps_} - int64_t{delay_} - static_cast<int64_t>(std::min<uint64_t>(age, steps_));
  fragments_[fragment].due = cycle() + std::max<int64_t>(left, 1);
}

}  // namespace atl
