#include "common/log.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/test_dir.h"

namespace atl {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

Logger MakeLogger(std::ostream* out, LogFormat format, LogLevel level = LogLevel::kInfo) {
  LogOptions options;
  options.stream = out;
  options.format = format;
  options.level = level;
  auto logger = Logger::Create(options);
  EXPECT_TRUE(logger.ok()) << logger.status();
  return *std::move(logger);
}

int64_t Lines(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

TEST(LogTest, TextLine) {
  std::ostringstream out;
  const Logger logger = MakeLogger(&out, LogFormat::kText).With("component", "round").With("fragment", 0);
  logger.Info("round closed",
              {{"version", uint64_t{12}}, {"why", "all arrived"}, {"loss", 1.25}, {"ok", true}});
  EXPECT_THAT(out.str(), MatchesRegex("[0-9:.]+ info    round      round closed  fragment=0 version=12 "
                                      "why=\"all arrived\" loss=1.25 ok=true\n"));
}

TEST(LogTest, TextWithoutComponentOrFields) {
  std::ostringstream out;
  MakeLogger(&out, LogFormat::kText).Warning("low on disk");
  EXPECT_THAT(out.str(), MatchesRegex("[0-9:.]+ warning low on disk\n"));
}

TEST(LogTest, ForeignTextCannotFakeALine) {
  std::ostringstream out;
  MakeLogger(&out, LogFormat::kText)
      .Info("joined",
            {{"worker", "a\n12:00:00.000 error   fake"}, {"x", "\x1b[31m"}, {"empty", ""}, {"q", "a\"b\\"}});
  EXPECT_THAT(out.str(), HasSubstr("worker=\"a\\x0a12:00:00.000 error   fake\""));
  EXPECT_THAT(out.str(), HasSubstr("x=\\x1b[31m empty=\"\" q=\"a\\\"b\\\\\"\n"));
  EXPECT_EQ(Lines(out.str()), 1);
}

TEST(LogTest, ForeignTextInAMessageCannotFakeALineEither) {
  std::ostringstream out;
  MakeLogger(&out, LogFormat::kText)
      .Warning("worker 'x\n05:00:00.000 info    run        forged\x1b[31m \xe2\x80\xaetxet' is refused");
  EXPECT_THAT(out.str(),
              HasSubstr("worker 'x\n    05:00:00.000 info    run        forged\\x1b[31m txet' is refused\n"));
}

TEST(LogTest, JsonLine) {
  std::ostringstream out;
  const Logger logger = MakeLogger(&out, LogFormat::kJson).With("component", "round");
  logger.Error("a \"quoted\"\nmessage", {{"version", uint64_t{18446744073709551615u}},
                                         {"negative", -3},
                                         {"loss", std::numeric_limits<double>::quiet_NaN()},
                                         {"ok", false},
                                         {"level", "mine"},
                                         {"broken", "\xff"},
                                         {"status", absl::NotFoundError("gone")}});
  ASSERT_EQ(Lines(out.str()), 1);
  const auto json = nlohmann::json::parse(out.str());
  EXPECT_THAT(json["time"].get<std::string>(),
              MatchesRegex("[0-9]+-[0-9]+-[0-9]+T[0-9]+:[0-9]+:[0-9]+.[0-9]+Z"));
  EXPECT_EQ(json["level"], "error");
  EXPECT_EQ(json["component"], "round");
  EXPECT_EQ(json["message"], "a \"quoted\"\nmessage");
  EXPECT_EQ(json["version"], 18446744073709551615u);
  EXPECT_EQ(json["negative"], -3);
  EXPECT_EQ(json["loss"], "nan");
  EXPECT_EQ(json["ok"], false);
  EXPECT_EQ(json["level_"], "mine");
  EXPECT_EQ(json["broken"], "\xef\xbf\xbd");
  EXPECT_EQ(json["status"], "NOT_FOUND: gone");
}

TEST(LogTest, LevelFilters) {
  std::ostringstream out;
  const Logger logger = MakeLogger(&out, LogFormat::kText, LogLevel::kWarning);
  logger.Debug("no");
  logger.Info("no");
  EXPECT_EQ(out.str(), "");
  EXPECT_FALSE(logger.Enabled(LogLevel::kInfo));
  EXPECT_TRUE(logger.Enabled(LogLevel::kWarning));
  const Logger nothing;
  nothing.Error("dropped");
  EXPECT_FALSE(nothing.Enabled(LogLevel::kError));
}

TEST(LogTest, ThreadsWriteWholeLines) {
  std::ostringstream out;
  const Logger logger = MakeLogger(&out, LogFormat::kJson);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&logger, t] {
      const Logger mine = logger.With("thread", t);
      for (int i = 0; i < 200; ++i) mine.Info("line", {{"i", i}});
    });
  }
  for (auto& thread : threads) thread.join();
  std::istringstream lines(out.str());
  std::string line;
  int count = 0;
  for (; std::getline(lines, line); ++count) EXPECT_TRUE(nlohmann::json::accept(line)) << line;
  EXPECT_EQ(count, 800);
}

TEST(LogTest, WritesToAFileAndReportsOneThatCannotBeOpened) {
  TestDir dir;
  LogOptions options;
  options.file = dir.File("atoll.log");
  {
    const auto logger = Logger::Create(options);
    ASSERT_TRUE(logger.ok()) << logger.status();
    logger->Info("hello");
  }
  EXPECT_THAT(*ReadFile(options.file), HasSubstr("hello"));
  options.file = dir.path();
  EXPECT_EQ(Logger::Create(options).status().code(), absl::StatusCode::kPermissionDenied);
}

TEST(LogTest, ParsesLevels) {
  EXPECT_EQ(*ParseLogLevel("warning"), LogLevel::kWarning);
  EXPECT_EQ(std::string(ParseLogLevel("loud").status().message()),
            "log level 'loud' is not one of debug, info, warning, error, off");
}

}  // namespace
}  // namespace atl
