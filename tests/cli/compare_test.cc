// atollctl compare without a coordinator: reading, the curve of a run, the comparison, and what is printed.
#include <sys/stat.h>

#include <cmath>
#include <limits>
#include <sstream>

#include "absl/strings/str_join.h"
#include "cli/compare/compare_view.h"
#include "cli/compare/comparison.h"
#include "cli/compare/read_run.h"
#include "cli/compare/run_curve.h"
#include "cli/metric_writer.h"
#include "cli/plot.h"
#include "cli/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/common/test_dir.h"

namespace atl {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

v1::MetricPoint Point(const std::string& name, double seconds, uint64_t version, uint64_t tokens,
                      double value) {
  v1::MetricPoint point;
  point.set_name(name);
  point.set_unix_nanos(static_cast<int64_t>(seconds * 1e9));
  point.set_version(version);
  point.set_committed_tokens(tokens);
  point.set_value(value);
  return point;
}

/// What the export has of a round of two workers: 100 tokens, 50 bytes, 10 and 6 inner steps.
void AddRound(uint64_t version, uint64_t tokens, double loss, std::vector<v1::MetricPoint>& points) {
  const double at = 1000 + 10 * static_cast<double>(version);
  points.push_back(Point("train/loss", at, version, tokens, loss + 0.5));
  points.push_back(Point("round/tokens", at, version, tokens, 100));
  points.push_back(Point("round/payload_bytes", at, version, tokens, 50));
  points.push_back(Point("worker/steps", at, version, tokens, 10));
  points.push_back(Point("worker/steps", at, version, tokens, 6));
  points.push_back(Point("validation/loss", at + 1, version, tokens, loss));
}

std::vector<v1::MetricPoint> RunOf(const std::vector<double>& losses) {
  std::vector<v1::MetricPoint> points = {Point("validation/loss", 1000, 0, 0, losses[0])};
  for (size_t i = 1; i < losses.size(); ++i) AddRound(i, 100 * i, losses[i], points);
  return points;
}

RunCurve CurveOf(const std::vector<v1::MetricPoint>& points, const std::string& name,
                 ComparedLoss loss = ComparedLoss::kValidation) {
  CurveBuilder builder;
  for (const v1::MetricPoint& point : points) builder.Add(point);
  auto curve = builder.Build(loss);
  EXPECT_TRUE(curve.ok()) << curve.status();
  curve->name = name;
  curve->source = name + ".jsonl";
  return *curve;
}

std::vector<double> Losses(const RunCurve& curve) {
  std::vector<double> losses;
  for (const CurvePoint& point : curve.points) losses.push_back(point.loss);
  return losses;
}

TEST(CompareTest, ACurveHasEveryAxis) {
  const RunCurve curve = CurveOf(RunOf({5, 4, 3}), "a");
  EXPECT_THAT(Losses(curve), ElementsAre(5, 4, 3));
  const CurvePoint& last = curve.points.back();
  EXPECT_EQ(last.tokens, 200);
  EXPECT_EQ(last.steps, 16) << "the mean of both workers";
  EXPECT_EQ(last.rounds, 2);
  EXPECT_EQ(last.seconds, 20);
  EXPECT_EQ(last.bytes, 100);
  EXPECT_EQ(curve.points.front().tokens, 0);
  EXPECT_EQ(curve.tokens_per_second, 10);
  EXPECT_EQ(curve.bytes_per_token, 0.5);
  EXPECT_THAT(Losses(CurveOf(RunOf({5, 4, 3}), "a", ComparedLoss::kTraining)), ElementsAre(4.5, 3.5));
}

TEST(CompareTest, BytesOfOtherFragmentsCount) {
  std::vector<v1::MetricPoint> points = RunOf({5, 4, 3});
  points.push_back(Point("fragment/1/round/payload_bytes", 1009, 1, 100, 7));
  points.push_back(Point("fragment/1/round/payload_bytes", 1019, 2, 200, 9));
  points.push_back(Point("fragment/1/train/loss", 1019, 2, 200, 1));
  const RunCurve curve = CurveOf(points, "a");
  EXPECT_EQ(curve.points[1].bytes, 57);
  EXPECT_EQ(curve.points[2].bytes, 116);
  EXPECT_EQ(curve.bytes_per_token, 116.0 / 200);
}

TEST(CompareTest, WhatARestoreAbandonedIsNotInTheCurve) {
  std::vector<v1::MetricPoint> points = RunOf({5, 4, 3, 2});
  points.push_back(Point("round/tokens", 1040, 4, 100, 0));  // back to the contents of version 1
  points.push_back(Point("round/payload_bytes", 1040, 4, 100, 0));
  AddRound(5, 200, 3.5, points);
  const RunCurve curve = CurveOf(points, "a");
  EXPECT_THAT(Losses(curve), ElementsAre(5, 4, 3.5));
  EXPECT_EQ(curve.points.back().bytes, 200) << "what was moved in vain was moved";
  EXPECT_EQ(curve.points.back().rounds, 4);
}

TEST(CompareTest, BothFormatsOfTheExportGiveTheSameCurve) {
  std::vector<v1::MetricPoint> points = RunOf({5, std::numeric_limits<double>::quiet_NaN(), 3});
  points.push_back(Point("worker/loss", 1020, 2, 200, 1));
  points.back().set_worker("a,\"b");
  std::vector<RunCurve> curves;
  for (const bool csv : {true, false}) {
    std::stringstream text;
    const auto writer = csv ? CsvWriter(&text) : JsonLinesWriter(&text);
    for (const v1::MetricPoint& point : points) ASSERT_TRUE(writer->Add(point).ok());
    ASSERT_TRUE(writer->Finish().ok());
    CurveBuilder builder;
    const absl::Status read = ReadMetrics("file", text, builder);
    ASSERT_TRUE(read.ok()) << read;
    curves.push_back(*builder.Build(ComparedLoss::kValidation));
  }
  ASSERT_EQ(curves[0].points.size(), 3);
  for (const RunCurve& curve : curves) {
    EXPECT_TRUE(std::isnan(curve.points[1].loss));
    EXPECT_NEAR(curve.points[2].seconds, 20, 1e-5);
    EXPECT_EQ(curve.points[2].loss, 3);
    EXPECT_EQ(curve.points[2].bytes, 100);
  }
}

TEST(CompareTest, AFileThatIsNoExportIsNamedWithItsLine) {
  const auto complaint = [](const std::string& text) {
    std::stringstream in(text);
    CurveBuilder builder;
    return std::string(ReadMetrics("a.csv", in, builder).message());
  };
  const std::string head = "unix_time,name,worker,version,committed_tokens,value\n";
  EXPECT_THAT(complaint("hello\n"), HasSubstr("a.csv, line 1: this is no file of `atollctl metrics export`"));
  EXPECT_THAT(complaint(head + "1.0,train/loss,,1,1\n"), HasSubstr("a.csv, line 2: expected 6 fields"));
  EXPECT_THAT(complaint(head + "1.0,train/loss,,-1,1,2\n"), HasSubstr("'-1' is no version"));
  EXPECT_THAT(complaint(head + "1.0,\"train,,1,1,2\n"), HasSubstr("expected 6 fields"));
  EXPECT_THAT(complaint("{\"name\":\"x\"}\n"), HasSubstr("line 1: 'unix_time' is missing"));
  EXPECT_THAT(complaint("{}\n{"), HasSubstr("line 1"));
  EXPECT_EQ(complaint(head), "");
}

TEST(CompareTest, ADeviceAPipeAndAFolderAreRejectedAtOnce) {
  const TestDir dir;
  const std::string pipe = dir.path() + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const auto& [path, what] :
       {std::pair(std::string("/dev/zero"), "open /dev/zero: is a device, not a file"),
        std::pair(pipe, "is a pipe (FIFO), not a file"), std::pair(dir.path(), "Is a directory")}) {
    CurveBuilder builder;
    EXPECT_THAT(std::string(ReadMetricsFile(path, builder).message()), HasSubstr(what));
  }
}

TEST(CompareTest, ARunIsAFileOrAnAddress) {
  EXPECT_EQ(ParseRunArgument("127.0.0.1:7601")->source, "127.0.0.1:7601");
  const auto named = ParseRunArgument("mine=[::1]:7601");
  ASSERT_TRUE(named.ok());
  EXPECT_EQ(named->name, "mine");
  EXPECT_EQ(named->source, "[::1]:7601");
  EXPECT_FALSE(named->is_file);
  for (const char* const bad : {"nofile.csv", "host", "host:0", "host:x", "host:70000", "a=", ""}) {
    EXPECT_THAT(std::string(ParseRunArgument(bad).status().message()), HasSubstr("neither a file")) << bad;
  }
}

TEST(CompareTest, LossesAtEqualTokensAndTokensToEqualLoss) {
  const std::vector<RunCurve> curves = {CurveOf(RunOf({5, 4, 3, 2.5}), "fast"),
                                        CurveOf(RunOf({5, 4.5, 4}), "slow")};
  const Comparison comparison = Compare(curves);
  EXPECT_EQ(comparison.equal_tokens, 200);
  EXPECT_EQ(comparison.target, 4);
  EXPECT_EQ(comparison.runs[0].loss_at_equal_tokens, 3);
  EXPECT_EQ(comparison.runs[1].loss_at_equal_tokens, 4);
  EXPECT_EQ(comparison.runs[0].tokens_to_target, 100);
  EXPECT_EQ(comparison.runs[1].tokens_to_target, 200);
  EXPECT_EQ(LossAt(curves[0], 250), 2.75);
  EXPECT_EQ(LossAt(curves[1], 250), std::nullopt);
  EXPECT_EQ(TokensTo(curves[0], 4.5), 50);
  EXPECT_EQ(TokensTo(curves[1], 3), std::nullopt);
}

TEST(CompareTest, ARunThatDivergedSetsNeitherScaleNorTarget) {
  std::vector<double> wild(30, 3.0);
  wild[20] = 1e12;
  wild.back() = std::numeric_limits<double>::infinity();
  CompareView view;
  view.curves = {CurveOf(RunOf(std::vector<double>(30, 2.5)), "calm"), CurveOf(RunOf(wild), "wild")};
  view.comparison = Compare(view.curves);
  EXPECT_EQ(view.comparison.target, 3);
  const std::string text =
      absl::StrJoin(RenderComparison(view, {.width = 100, .height = 30, .colour = false}), "\n");
  EXPECT_THAT(text, Not(HasSubstr("e+12")));
}

TEST(CompareTest, TheTableAndThePlotNameEveryRunAndTheAxis) {
  CompareView view;
  view.curves = {CurveOf(RunOf({5, 4, 3, 2.5}), "fast"), CurveOf(RunOf({5, 4.5, 4}), "bad\x1b[31m")};
  view.comparison = Compare(view.curves);
  for (const auto& [axis, range] :
       {std::pair(CompareAxis::kTokens, "tokens 0 to 300"), std::pair(CompareAxis::kSteps, "steps 0 to 24"),
        std::pair(CompareAxis::kRounds, "rounds 0 to 3"), std::pair(CompareAxis::kTime, "time 0 s to 30.0 s"),
        std::pair(CompareAxis::kBytes, "bytes 0 B to 150 B")}) {
    view.axis = axis;
    const std::vector<std::string> lines =
        RenderComparison(view, {.width = 90, .height = 24, .colour = false});
    const std::string text = absl::StrJoin(lines, "\n");
    EXPECT_THAT(text, HasSubstr(range));
    EXPECT_THAT(text, HasSubstr("── fast"));
    EXPECT_THAT(text, HasSubstr("loss at 200"));
    EXPECT_THAT(text, HasSubstr("tokens to 4.0000"));
    EXPECT_THAT(text, HasSubstr("2.5000 at 300"));
    EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  }
}

TEST(CompareTest, ThePlotHoldsLossesThatAreFarApartOrNeighbours) {
  constexpr double kHuge = std::numeric_limits<double>::max();
  constexpr double kTiny = std::numeric_limits<double>::denorm_min();
  for (const auto& [from, to] : {std::pair(kHuge, -kHuge), std::pair(1e16 + 2, 1e16), std::pair(kTiny, 0.0),
                                 std::pair(5.539623785018922, 5.539623785018921)}) {
    const std::vector<std::string> lines =
        PlotCurves({{.name = "a", .colour = "", .points = {{0, from}, {1, from}, {2, to}, {3, to}}}}, 60, 12,
                   /*colour=*/false);
    ASSERT_EQ(lines.size(), 12U) << from;
    // From the upper left corner to the lower right one.
    EXPECT_THAT(lines[0], HasSubstr("┤⠉⠉")) << from;
    EXPECT_THAT(lines[9], HasSubstr("⣀⣀")) << from;
    EXPECT_THAT(lines[9], Not(HasSubstr("┤⣀"))) << from;
    for (const std::string& line : lines)
      EXPECT_THAT(line, AllOf(Not(HasSubstr("inf")), Not(HasSubstr("nan"))));
  }
}

TEST(CompareTest, JsonAndCsvHaveEveryPoint) {
  CompareView view;
  view.curves = {CurveOf(RunOf({5, 4, 3}), "a"), CurveOf(RunOf({5, 4.5}), "b,\"c\"")};
  view.comparison = Compare(view.curves);
  const nlohmann::ordered_json json = CompareJson(view);
  EXPECT_EQ(json["equal_tokens"], 100);
  EXPECT_EQ(json["target_loss"], 4.5);
  EXPECT_EQ(json["runs"][0]["points"].size(), 3);
  EXPECT_EQ(json["runs"][0]["last"]["loss"], 3);
  EXPECT_EQ(json["runs"][1]["tokens_to_target"], 100);
  std::stringstream out;
  WriteCompareCsv(view, out);
  EXPECT_THAT(out.str(), HasSubstr("a,2,200,16,2,20.000000000,100,3\n"));
  EXPECT_THAT(out.str(), HasSubstr("\"b,\"\"c\"\"\",1,100,8,1,10.000000000,50,4.5\n"));
}

TEST(CompareTest, ThePageHoldsTheDataAndNoNameEndsItsScript) {
  CompareView view;
  view.curves = {CurveOf(RunOf({5, 4, 3}), "</script><img src=x onerror=1>")};
  view.comparison = Compare(view.curves);
  const std::string page = CompareHtml(view);
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  EXPECT_THAT(page, Not(HasSubstr("@DATA@")));
  EXPECT_THAT(page, Not(HasSubstr("\nimport ")));
  EXPECT_THAT(page, Not(HasSubstr("\nexport ")));
  EXPECT_THAT(page, HasSubstr("\\u003c/script\\u003e"));
  EXPECT_THAT(page, HasSubstr("prefers-color-scheme: dark"));
  EXPECT_THAT(page, Not(HasSubstr("src=\"http")));
}

}  // namespace
}  // namespace atl
