#include "core/grace_estimate.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace atl {
namespace {

MonoTime At(double seconds) { return MonoTime(Seconds(seconds)); }

RoundOptions Options() {
  RoundOptions options{.deadline = Seconds(100), .quorum = 0.5, .grace = Seconds(10)};
  options.grace_mode = GraceMode::kAdaptive;
  return options;
}

/// Arrivals at these seconds; the rest is still waited for.
RoundView View(uint64_t base, const std::vector<double>& arrivals, std::vector<WorkerName> missing = {}) {
  RoundView view{.base = Version(base), .expected = std::move(missing)};
  for (const double at : arrivals) {
    view.arrived.push_back({.worker = absl::StrCat("a", at), .at = At(at)});
  }
  return view;
}

double Grace(const GraceEstimate& estimate) { return ToSeconds(estimate.Applied(Options()).grace); }

TEST(GraceEstimate, ConfiguredUntilARoundHasClosed) {
  GraceEstimate estimate;
  EXPECT_EQ(Grace(estimate), 10);
  EXPECT_EQ(estimate.average(), std::nullopt);
}

TEST(GraceEstimate, FollowsHowLongStragglersTook) {
  GraceEstimate estimate;
  estimate.Closed(View(1, {10, 11, 12, 15}), Options());  // the quorum is two: at 11
  EXPECT_NEAR(*estimate.average(), 4, 1e-9);
  EXPECT_NEAR(Grace(estimate), 8, 1e-9);
  estimate.Closed(View(2, {110, 111, 112, 125}), Options());
  EXPECT_NEAR(*estimate.average(), 4 + 0.3 * (14 - 4), 1e-9);
  RoundOptions fixed = Options();
  fixed.grace_mode = GraceMode::kFixed;
  EXPECT_EQ(estimate.Applied(fixed).grace, Seconds(10));
}

TEST(GraceEstimate, WhoCameTooLateCountsAllTheSame) {
  GraceEstimate estimate;
  estimate.Closed(View(1, {10, 11}, {"slow", "gone"}), Options());
  EXPECT_NEAR(Grace(estimate), 0.1, 1e-9) << "the floor: nobody took longer, as far as is known";
  estimate.CameLate("slow", Version(0), At(30));
  estimate.CameLate("joiner", Version(1), At(40));
  EXPECT_NEAR(Grace(estimate), 0.1, 1e-9) << "another round's, and one who was not waited for";
  estimate.CameLate("slow", Version(1), At(31));
  EXPECT_NEAR(Grace(estimate), 40, 1e-9) << "20 s after the quorum";
  estimate.CameLate("slow", Version(1), At(80));
  EXPECT_NEAR(Grace(estimate), 40, 1e-9) << "its first attempt says it";
}

TEST(GraceEstimate, AGraceOnceTooShortCatchesItsStragglerInTheEnd) {
  // The quorum arrives after 10 s, the slow one after 25: the fixed 10 s miss it, the next round does not.
  GraceEstimate estimate;
  double start = 0;
  int missed = 0;
  for (uint64_t base = 1; base <= 20; ++base) {
    const bool in_time = 10 + Grace(estimate) >= 25;
    missed += in_time ? 0 : 1;
    if (in_time) {
      estimate.Closed(View(base, {start + 10, start + 25}), Options());
    } else {
      estimate.Closed(View(base, {start + 10}, {"slow"}), Options());
      estimate.CameLate("slow", Version(base), At(start + 25));
    }
    start += 100;
  }
  EXPECT_EQ(missed, 1);
  EXPECT_NEAR(Grace(estimate), 30, 1e-6);
}

TEST(GraceEstimate, NeverLearnsMoreThanTheDeadlineAndNothingFromARoundWithoutQuorum) {
  GraceEstimate estimate;
  estimate.Closed(View(1, {10}, {"b", "c", "d"}), Options());
  EXPECT_EQ(estimate.average(), std::nullopt);
  estimate.Closed(View(2, {10, 11}, {"slow"}), Options());
  estimate.CameLate("slow", Version(2), At(5000));
  EXPECT_NEAR(*estimate.average(), 100, 1e-9);
  // And Decide never waits past the deadline, whatever the grace.
  const RoundDecision decision = Decide(At(100), View(3, {10, 11}, {"slow"}), estimate.Applied(Options()));
  EXPECT_EQ(decision.action, RoundDecision::Action::kClose);
}

TEST(OverlapGrace, IsAShareOfWhatTheFirstToArriveDoesNotFeel) {
  // Five steps of half a second, of which one second went to the quorum and half a second to the commit.
  EXPECT_NEAR(ToSeconds(OverlapGrace(5, 2.0, Seconds(1), Seconds(0.5))), 0.8, 1e-9);
  EXPECT_EQ(OverlapGrace(5, 2.0, Seconds(3), Seconds(0.5)), Duration(0)) << "nothing is left";
  EXPECT_EQ(OverlapGrace(0, 2.0, Seconds(0), Seconds(0)), Duration(0));
}

}  // namespace
}  // namespace atl
