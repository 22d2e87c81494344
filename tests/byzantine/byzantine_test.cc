#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_format.h"
#include "tests/byzantine/experiment.h"
#include "tests/common/test_dir.h"

// The short form of bench/byzantine: what docs/reference/byzantine.md promises. Everything is trained, with a
// real coordinator and a real disk; losses are compared with the clean run of the plain mean.

namespace atl::byzantine {
namespace {

using testing::HasSubstr;

constexpr double kBound = 1.03;

constexpr MergeOptions kGuard{.norm_guard = true};
constexpr MergeOptions kClip{.method = MergeMethod::kCenteredClip, .clip_by_distance = true};
constexpr OffenderOptions kRule{.ban_after = 3};

std::vector<Outcome> RunAll(const std::vector<Experiment>& experiments) {
  const TestDir folder;
  std::vector<Outcome> outcomes(experiments.size());
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < experiments.size(); i = next++) {
      auto outcome = Run(experiments[i], folder.File(absl::StrFormat("run-%d", i)));
      EXPECT_TRUE(outcome.ok()) << outcome.status();
      if (outcome.ok()) outcomes[i] = *std::move(outcome);
    }
  };
  std::thread other(work);
  work();
  other.join();
  return outcomes;
}

double Clean() {
  static const double loss = RunAll({Experiment{}}).front().loss;
  return loss;
}

std::string Describe(const Experiment& experiment) {
  return absl::StrFormat("%s by %d of 8", AttackName(experiment.attack), experiment.f);
}

void ExpectAllWithinTheBound(const std::vector<Experiment>& experiments) {
  const std::vector<Outcome> outcomes = RunAll(experiments);
  for (size_t i = 0; i < experiments.size(); ++i) {
    EXPECT_LE(outcomes[i].loss, kBound * Clean()) << Describe(experiments[i]);
    std::printf("%-36s %+.2f %%\n", Describe(experiments[i]).c_str(), 100 * (outcomes[i].loss / Clean() - 1));
  }
}

TEST(Byzantine, ThePlainMeanDiverges) {
  EXPECT_LT(Clean(), 2.4) << "nothing was learned: the uniform distribution has 3.47";
  const Outcome outcome = RunAll({{.attack = Attack::kScaled, .f = 1}}).front();
  EXPECT_FALSE(outcome.loss < 1.5 * Clean()) << outcome.loss;
}

TEST(Byzantine, TheNormGuardStandsWhatIsTooLarge) {
  ExpectAllWithinTheBound({{.merge = kGuard, .attack = Attack::kScaled, .f = 2},
                           {.merge = kGuard, .attack = Attack::kNoise, .f = 2},
                           {.merge = kGuard, .attack = Attack::kSignFlip, .f = 1}});
}

TEST(Byzantine, CenteredClippingStandsTheSameAndOneOfEightThatTurns) {
  ExpectAllWithinTheBound({{.merge = kClip},
                           {.merge = kClip, .attack = Attack::kScaled, .f = 2},
                           {.merge = kClip, .attack = Attack::kNoise, .f = 2},
                           {.merge = kClip, .attack = Attack::kSignFlip, .f = 1},
                           {.merge = kClip, .attack = Attack::kInflated, .f = 1},
                           {.merge = kClip, .attack = Attack::kScaledFlip, .f = 1}});
}

TEST(Byzantine, WithTheRuleTwoOfEightAreBannedAndNobodyElse) {
  const std::vector<Experiment> experiments = {
      {.merge = kClip, .offenders = kRule, .attack = Attack::kSignFlip, .f = 2},
      {.merge = kGuard, .offenders = kRule, .attack = Attack::kScaledFlip, .f = 2},
      {.merge = kClip, .offenders = kRule, .attack = Attack::kStale, .f = 2},
      {.merge = kClip, .offenders = kRule, .attack = Attack::kNan, .f = 2},
  };
  const std::vector<Outcome> outcomes = RunAll(experiments);
  for (size_t i = 0; i < experiments.size(); ++i) {
    const Outcome& outcome = outcomes[i];
    EXPECT_LE(outcome.loss, kBound * Clean()) << Describe(experiments[i]);
    EXPECT_EQ(outcome.banned.size(), 2u) << Describe(experiments[i]);
    EXPECT_TRUE(outcome.banned.contains("w6") && outcome.banned.contains("w7")) << Describe(experiments[i]);
    EXPECT_THAT(outcome.ban_event, HasSubstr("by rule (offenders.ban_after 3 of 10)"));
    std::printf("%-36s %+.2f %%  %s\n", Describe(experiments[i]).c_str(), 100 * (outcome.loss / Clean() - 1),
                outcome.ban_event.c_str());
  }
  EXPECT_THAT(outcomes[0].ban_event, HasSubstr("cosine -0."));
  EXPECT_THAT(outcomes[2].ban_event, HasSubstr("the bytes of an earlier contribution"));
  EXPECT_THAT(outcomes[3].ban_event, HasSubstr("values that are not finite"));
}

TEST(Byzantine, TheRuleBansNoneOfEightHonestOnes) {
  const std::vector<Outcome> outcomes = RunAll(
      {{.merge = kClip, .offenders = {.ban_after = 1}}, {.merge = kGuard, .offenders = {.ban_after = 1}}});
  for (const Outcome& outcome : outcomes) {
    EXPECT_TRUE(outcome.banned.empty()) << outcome.ban_event;
    for (const auto& [worker, offences] : outcome.offences) EXPECT_EQ(offences, 0u) << worker;
    EXPECT_LE(outcome.loss, 1.01 * Clean());
  }
}

}  // namespace
}  // namespace atl::byzantine
