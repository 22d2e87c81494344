#include "server/web/loss_curve.h"

#include <cmath>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace atoll {
namespace {

using nlohmann::json;

RoundDetailView RoundOf(uint64_t version, double a, double b) {
  RoundDetailView round;
  round.summary.version = Version(version);
  round.summary.committed_tokens = version * 100;
  round.summary.closed_unix_ns = static_cast<int64_t>(version) * 1'000'000'000;
  round.summary.train_loss = (a + b) / 2;
  round.contributions = {{.worker = "a", .loss = a}, {.worker = "b", .loss = b}};
  return round;
}

TEST(LossCurveTest, KeepsEveryRoundWhileThereAreFew) {
  LossCurve curve;
  curve.Add(RoundOf(1, 4, 5));
  RoundDetailView alone = RoundOf(2, 3, 3);
  alone.contributions.pop_back();
  curve.Add(alone);
  const auto points = curve.Points();
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(points[0].loss, 4.5);
  EXPECT_EQ(points[0].workers, (std::vector<double>{4, 5}));
  EXPECT_EQ(points[1].workers[0], 3);
  EXPECT_TRUE(std::isnan(points[1].workers[1]));
}

TEST(LossCurveTest, LossesThatAreNotToldAreNoZeros) {
  LossCurve curve;
  curve.Add(RoundOf(1, 0, 0));
  const auto points = curve.Points();
  ASSERT_EQ(points.size(), 1u) << "for the tokens of evaluations";
  EXPECT_TRUE(std::isnan(points[0].loss));
  EXPECT_TRUE(std::isnan(points[0].workers[0]));
  EXPECT_TRUE(json::parse(CurveJson(curve, {}))["loss"][0].is_null());
}

TEST(LossCurveTest, ARestoreHasNoPointAndIsPassed) {
  LossCurve curve;
  RoundDetailView restore;
  restore.summary.version = Version(7);
  curve.Add(restore);
  EXPECT_TRUE(curve.Points().empty());
  EXPECT_EQ(curve.last(), Version(7));
}

TEST(LossCurveTest, ALongRunIsDrawnFromMeans) {
  LossCurve curve;
  const uint64_t rounds = 10'000;
  for (uint64_t i = 1; i <= rounds; ++i) {
    curve.Add(RoundOf(i, static_cast<double>(i), static_cast<double>(i) + 1));
  }
  const auto points = curve.Points();
  EXPECT_EQ(curve.stride(), 16u);
  EXPECT_LE(points.size(), LossCurve::kMostPoints);
  ASSERT_EQ(points.size(), rounds / 16);
  for (size_t i = 0; i < points.size(); ++i) {
    // The mean of 16 i + 1 .. 16 i + 16.
    EXPECT_DOUBLE_EQ(points[i].workers[0], 16.0 * static_cast<double>(i) + 8.5);
    EXPECT_DOUBLE_EQ(points[i].loss, points[i].workers[0] + 0.5);
    EXPECT_EQ(points[i].version, Version(16 * (i + 1)));
    EXPECT_EQ(points[i].committed_tokens, 1600 * (i + 1));
  }
}

TEST(LossCurveTest, OfTooManyWorkersOnlyTheMeanIsKept) {
  LossCurve curve;
  RoundDetailView round = RoundOf(1, 2, 2);
  for (int i = 0; i < 200; ++i) round.contributions.push_back({.worker = "x" + std::to_string(i), .loss = 2});
  curve.Add(round);
  EXPECT_EQ(curve.workers().size(), LossCurve::kMostWorkers);
  EXPECT_EQ(curve.Points()[0].workers.size(), LossCurve::kMostWorkers);
  EXPECT_EQ(curve.Points()[0].loss, 2);
}

TEST(LossCurveTest, IsJsonWithValidationAtItsTokens) {
  LossCurve curve;
  curve.Add(RoundOf(2, 4, std::nan("")));
  curve.Add(RoundOf(4, 3, 3));
  const json read =
      json::parse(CurveJson(curve, {{.version = Version(0), .loss = 5.5},
                                    {.version = Version(3), .loss = 4, .unix_ns = 3'500'000'000},
                                    {.version = Version(9), .loss = 1}}));
  EXPECT_EQ(read["version"], json({2, 4}));
  EXPECT_EQ(read["tokens"], json({200, 400}));
  EXPECT_EQ(read["unixSeconds"], json({2.0, 4.0}));
  EXPECT_EQ(read["loss"], json({nullptr, 3.0}));
  EXPECT_EQ(read["workers"][0], json({{"name", "a"}, {"loss", {4.0, 3.0}}}));
  // Between the rounds 2 and 4; what is evaluated of a round that is not drawn yet waits for it.
  EXPECT_EQ(read["validation"]["tokens"], json({0, 300}));
  EXPECT_EQ(read["validation"]["loss"], json({5.5, 4.0}));
  EXPECT_EQ(read["validation"]["unixSeconds"][1], 3.5);
}

}  // namespace
}  // namespace atoll
