#include "core/round_policy.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace atl {
namespace {

using Action = RoundDecision::Action;

MonoTime At(double seconds) { return MonoTime(Seconds(seconds)); }

// Deadline 100 s, grace 10 s, from second 0 on.
RoundOptions Options(double quorum = 1, uint32_t minimum = 1) {
  return {.deadline = Seconds(100),
          .quorum = quorum,
          .minimum = minimum,
          .grace = Seconds(10),
          .start_workers = 4};
}

/// A view in which these arrived, one a second from second 1 on, and those are waited for.
RoundView View(size_t arrived, std::vector<WorkerName> expected) {
  RoundView view{.base = Version(7), .expected = std::move(expected), .live_trainers = 4};
  for (size_t i = 0; i < arrived; ++i) {
    view.arrived.push_back({.worker = absl::StrCat("a", i), .at = At(1.0 + static_cast<double>(i))});
  }
  return view;
}

struct Case {
  const char* what;
  double now;
  RoundView view;
  RoundOptions options;
  Action action;
  RunHealth health;
  const char* reason;           // a part of it
  std::optional<double> check;  // next_check
};

TEST(RoundPolicy, Table) {
  RoundView nobody = View(0, {});
  nobody.live_trainers = 0;
  RoundView nobody_yet = nobody;
  nobody_yet.base = Version(0);
  RoundView all_gone = View(2, {});
  all_gone.live_trainers = 0;
  RoundView gathering = View(3, {});
  gathering.base = Version(0);
  gathering.gathering = true;
  gathering.gathered = 3;
  gathering.gather_until = At(50);
  RoundView gathering_again = gathering;
  gathering_again.base = Version(7);

  RoundView with_late = View(4, {});
  with_late.late = 1;
  RoundView one_with_late = View(1, {"w"});
  one_with_late.late = 1;
  RoundView with_joiners = View(3, {"w"});
  with_joiners.next_round = {"x", "y"};

  const Case cases[] = {
      {"nobody", 500, nobody, Options(), Action::kWait, RunHealth::kDegraded, "no worker is live", {}},
      {"nobody yet",
       500,
       nobody_yet,
       Options(),
       Action::kWait,
       RunHealth::kStarting,
       "waiting for workers to join",
       {}},
      {"gathering", 20, gathering, Options(), Action::kWait, RunHealth::kStarting,
       "waiting for workers to join: 3 of 4 (round.start_workers) are here", 50},
      {"gathering again", 20, gathering_again, Options(), Action::kWait, RunHealth::kTraining,
       "all workers had left; waiting for others to join, at most round.lease_s: 3 of 4", 50},
      {"all arrived", 5, View(4, {}), Options(), Action::kClose, RunHealth::kTraining, "all 4 expected", {}},
      {"a late one besides",
       5,
       with_late,
       Options(),
       Action::kClose,
       RunHealth::kTraining,
       "all 4 expected contributions arrived and 1 late",
       {}},
      {"late at the deadline",
       100,
       one_with_late,
       Options(),
       Action::kClose,
       RunHealth::kTraining,
       "deadline: 1 of 2 arrived within 100.0 s and 1 late; without w",
       {}},
      {"held with one", 120, View(1, {"w"}), Options(1, 3), Action::kHold, RunHealth::kDegraded,
       "past the deadline: 1 contribution, at least 3", 300},
      {"two that came since", 5, with_joiners, Options(), Action::kWait, RunHealth::kTraining,
       "3 of 4 contributions, enough to close at the deadline; waiting for w; x, y count from the next round",
       100},
      {"one missing", 5, View(3, {"w"}), Options(), Action::kWait, RunHealth::kTraining, "waiting for w",
       100},
      {"none arrived", 5, View(0, {"v", "w"}), Options(), Action::kWait, RunHealth::kTraining, "0 of 2", 100},
      {"arrived, then all gone", 5, all_gone, Options(), Action::kClose, RunHealth::kTraining, "all 2", {}},
      {"deadline with one",
       100,
       View(1, {"w"}),
       Options(),
       Action::kClose,
       RunHealth::kTraining,
       "deadline: 1 of 2",
       {}},
      {"just before it", 99.9, View(1, {"w"}), Options(), Action::kWait, RunHealth::kTraining,
       "enough to close at the deadline", 100},
      {"quorum, grace running", 8, View(3, {"w"}), Options(0.75), Action::kWait, RunHealth::kTraining,
       "grace running", 13},
      {"quorum, grace over",
       13,
       View(3, {"w"}),
       Options(0.75),
       Action::kClose,
       RunHealth::kTraining,
       "without w",
       {}},
      {"below the quorum", 50, View(2, {"v", "w"}), Options(0.75), Action::kWait, RunHealth::kTraining,
       "2 of 4", 100},
      {"quorum is rounded up", 50, View(1, {"u", "v"}), Options(0.34), Action::kWait, RunHealth::kTraining,
       "1 of 3", 100},
      {"quorum of decimals",
       50,
       View(3, {"v", "w"}),
       Options(0.6),
       Action::kClose,
       RunHealth::kTraining,
       "quorum: 3 of 5",
       {}},
      {"a round that begins", 50, View(0, {"v", "w"}), Options(), Action::kWait, RunHealth::kTraining,
       "0 of 2 contributions; waiting for v, w", 100},
      {"minimum above quorum", 50, View(2, {"v", "w"}), Options(0.5, 3), Action::kWait, RunHealth::kTraining,
       "2 of 4 contributions; waiting for v, w", 100},
      {"all, below minimum", 50, View(2, {}), Options(1, 3), Action::kWait, RunHealth::kTraining,
       "2 of 2 contributions, at least 3 are needed", 100},
      {"held", 120, View(2, {"w"}), Options(1, 3), Action::kHold, RunHealth::kDegraded,
       "20.0 s past the deadline: 2 contributions, at least 3", 300},
      {"held, someone is needed", 120, View(2, {}), Options(1, 3), Action::kHold, RunHealth::kDegraded,
       "waiting for workers to join", 300},
      {"critical", 300, View(0, {"w"}), Options(), Action::kHold, RunHealth::kCritical, "waiting for w", {}},
      {"all arrived after a hold",
       250,
       View(3, {}),
       Options(1, 3),
       Action::kClose,
       RunHealth::kTraining,
       "all 3",
       {}},
      {"enough after a hold",
       250,
       View(3, {"w"}),
       Options(1, 3),
       Action::kClose,
       RunHealth::kTraining,
       "deadline",
       {}},
  };
  for (const Case& c : cases) {
    const RoundDecision decision = Decide(At(c.now), c.view, c.options);
    EXPECT_EQ(decision.action, c.action) << c.what << ": " << decision.reason;
    EXPECT_EQ(decision.health, c.health) << c.what;
    EXPECT_THAT(decision.reason, testing::HasSubstr(c.reason)) << c.what;
    const std::optional<MonoTime> check = c.check ? std::optional(At(*c.check)) : std::nullopt;
    EXPECT_EQ(decision.next_check, check) << c.what;
    if (decision.action != Action::kClose && !c.view.gathering) {
      EXPECT_EQ(decision.waits_for_expected, !c.view.expected.empty()) << c.what;
    }
  }
}

TEST(RoundPolicy, ReachesEveryDecisionThroughItsOwnNextCheck) {
  // Nothing happens but time: following next_check must lead from waiting to closing or to critical, never
  // round in circles.
  for (const size_t arrived : {0, 1, 2, 3}) {
    for (const double quorum : {0.25, 0.5, 1.0}) {
      for (const uint32_t minimum : {1u, 2u, 4u}) {
        RoundView view = View(arrived, {"w"});
        MonoTime now = At(4);
        RoundDecision decision = Decide(now, view, Options(quorum, minimum));
        for (int hops = 0; decision.next_check && hops < 4; ++hops) {
          ASSERT_GT(*decision.next_check, now);
          now = *decision.next_check;
          decision = Decide(now, view, Options(quorum, minimum));
        }
        EXPECT_EQ(decision.action, arrived >= minimum ? Action::kClose : Action::kHold);
        if (arrived < minimum) {
          EXPECT_EQ(decision.health, RunHealth::kCritical);
        }
      }
    }
  }
}

TEST(RoundPolicy, LooksAgainWhenTheExpectedChangeByTimeAlone) {
  RoundView view = View(1, {"w"});
  view.expected_change_at = At(15);
  EXPECT_EQ(Decide(At(5), view, Options()).next_check, At(15));
}

TEST(RoundPolicy, NamesOnlyTheFirstOfMany) {
  std::vector<WorkerName> many;
  for (int i = 10; i < 40; ++i) many.push_back(absl::StrCat("w", i));
  const RoundDecision decision = Decide(At(5), View(0, many), Options());
  EXPECT_THAT(decision.reason, testing::HasSubstr("w17 and 22 more"));
  EXPECT_TRUE(decision.waits_for_expected);
}

}  // namespace
}  // namespace atl
