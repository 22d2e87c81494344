#include "server/web/loss_curve.h"

#include <cmath>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace atl {
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

RoundDetailView RestoreTo(uint64_t version, uint64_t tokens) {
  RoundDetailView restore;
  restore.summary.version = Version(version);
  restore.summary.committed_tokens = tokens;
  restore.summary.closed_unix_ns = static_cast<int64_t>(version) * 1'000'000'000;
  restore.summary.close_reason = "restored from checkpoint 'two'";
  return restore;
}

TEST(LossCurveTest, ScoresOfTasksAreASeriesForEachMetric) {
  LossCurve curve;
  curve.Add(RoundOf(1, 4, 5));
  curve.Add(RoundOf(2, 3, 4));
  const TaskScore acc{
      .task = "mmlu", .metric = "acc", .value = 0.25, .standard_error = 0.125, .questions = 8};
  TaskScore later = acc;
  later.value = 0.5;
  later.standard_error = 0;
  TaskScore other = acc;
  other.metric = "answers_acc";
  const json out =
      json::parse(CurveJson(curve, {{.version = Version(0), .loss = 5, .tasks = {acc}},
                                    {.version = Version(1), .loss = 4},
                                    {.version = Version(2), .loss = 3, .tasks = {later, other}}}));
  ASSERT_EQ(out["tasks"].size(), 2u);
  EXPECT_EQ(out["tasks"][0]["metric"], "acc");
  EXPECT_EQ(out["tasks"][0]["version"], (json{0, 2}));
  EXPECT_EQ(out["tasks"][0]["tokens"], (json{0, 200}));
  EXPECT_EQ(out["tasks"][0]["value"], (json{0.25, 0.5}));
  EXPECT_EQ(out["tasks"][0]["error"], (json{0.125, 0}));
  EXPECT_EQ(out["tasks"][0]["questions"], (json{8, 8}));
  EXPECT_EQ(out["tasks"][1]["task"], "mmlu");
  EXPECT_EQ(out["tasks"][1]["version"], (json{2}));
  EXPECT_EQ(json::parse(CurveJson(curve, {}))["tasks"], json::array());
}

TEST(LossCurveTest, ARestoreHasNoPointAndIsPassed) {
  LossCurve curve;
  curve.Add(RestoreTo(7, 300));
  EXPECT_TRUE(curve.Points().empty());
  EXPECT_EQ(curve.last(), Version(7));
}

TEST(LossCurveTest, ARestoreBeginsAnEpochAndAbandonsWhatCameAfterTheCheckpoint) {
  LossCurve curve;
  for (uint64_t i = 1; i <= 4; ++i) curve.Add(RoundOf(i, 6 - static_cast<double>(i), 5));
  curve.Add(RestoreTo(5, 200));
  RoundDetailView after = RoundOf(6, 3, 3);
  after.summary.committed_tokens = 300;
  curve.Add(after);
  const json read = json::parse(CurveJson(curve, {{.version = Version(2), .loss = 4},
                                                  {.version = Version(4), .loss = 3},
                                                  {.version = Version(5), .loss = 4},
                                                  {.version = Version(6), .loss = 3.5}}));
  EXPECT_EQ(read["version"], json({1, 2, 3, 4, 6}));
  EXPECT_EQ(read["tokens"], json({100, 200, 300, 400, 300}));
  EXPECT_EQ(read["epoch"], json({0, 0, 0, 0, 1}));
  EXPECT_EQ(read["abandoned"], json({false, false, true, true, false}));
  EXPECT_EQ(read["restores"], json::array({{{"version", 5},
                                            {"tokens", 200},
                                            {"unixSeconds", 5.0},
                                            {"reason", "restored from checkpoint 'two'"}}}));
  EXPECT_EQ(read["validation"]["tokens"], json({200, 400, 200, 300}));
  EXPECT_EQ(read["validation"]["epoch"], json({0, 0, 1, 1}));
  EXPECT_EQ(read["validation"]["abandoned"], json({false, true, false, false}));
}

TEST(LossCurveTest, MeansNeverJoinTwoEpochs) {
  LossCurve curve;
  uint64_t version = 0;
  for (int epoch = 0; epoch < 7; ++epoch) {
    for (int i = 0; i < 333; ++i) curve.Add(RoundOf(++version, epoch + 1, epoch + 1));
    curve.Add(RestoreTo(++version, 0));
  }
  const auto points = curve.Points();
  EXPECT_LE(points.size(), LossCurve::kMostPoints);
  for (const CurvePoint& point : points) EXPECT_EQ(point.loss, static_cast<double>(point.epoch) + 1);
  // As many restores as one likes cost no more memory than a long run does.
  for (int i = 0; i < 5000; ++i) {
    curve.Add(RoundOf(++version, 2, 2));
    curve.Add(RestoreTo(++version, 0));
  }
  EXPECT_LE(curve.Points().size(), LossCurve::kMostPoints);
  EXPECT_LE(curve.restores().size(), LossCurve::kMostRestores);
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
}  // namespace atl
