#ifndef ATOLL_CLIENT_SYNC_STREAMED_FRAGMENT_H_
#define ATOLL_CLIENT_SYNC_STREAMED_FRAGMENT_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "client/sync/fragment_exchange.h"
#include "client/sync/inner_round.h"
#include "client/sync/parameter_puller.h"
#include "client/sync/pseudo_gradient_encoder.h"

namespace atl {

/// One fragment of the overlapped loop. The training thread's, but for what its exchange uses while it is
/// away.
struct StreamedFragment {
  explicit StreamedFragment(FragmentBase from) : base(std::move(from)) {}

  /// Inner steps until those since the last push complete the budget, if the others take as many. Not while
  /// the fragment is away.
  uint64_t StepsToBudget(uint64_t tokens_per_step) const {
    const uint64_t active = std::max<uint64_t>(base.plan.active_workers, 1);
    // The plan's active workers are ranks. Of a worker of several, a rank's part.
    const uint64_t of_one = std::min(window.tokens, uint64_t{window.steps} * tokens_per_step);
    const uint64_t there = base.plan.committed_tokens + of_one * active;
    if (there >= base.plan.total_tokens) return 0;
    return (base.plan.total_tokens - there - 1) / (tokens_per_step * active) + 1;
  }
  uint32_t index() const { return base.layout.id.value(); }
  /// Nothing more of it is pushed.
  bool left_behind() const { return finished || pushed_to_leave; }

  FragmentBase base;
  PseudoGradientEncoder* encoder = nullptr;
  std::unique_ptr<FragmentExchange> exchange;
  std::vector<float>
      local_at_push;        // with AnswerUse::kRebase: the local parameters when it was sent for an answer
  InnerRound window;        // the inner steps since the last push
  uint32_t generation = 0;  // of the loop, when it was pushed last
  bool take_as_published = false;  // the next answer replaces the local parameters, whatever alpha says
  bool pushed_to_leave = false;    // its last push before the worker leaves was made
  bool finished = false;           // there will be no newer version
};

}  // namespace atl

#endif  // ATOLL_CLIENT_SYNC_STREAMED_FRAGMENT_H_
