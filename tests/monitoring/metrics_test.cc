#include "monitoring/metrics.h"

#include <atomic>
#include <cmath>
#include <limits>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/promtool.h"

namespace atl {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(MetricsTest, CountersGaugesAndHistogramsAreShown) {
  MetricsRegistry registry;
  const Counter counter = registry.AddCounter("atoll_things_total", "Things.", {{"kind", "good"}});
  counter.Increment();
  counter.Increment(2);
  registry.AddGauge("atoll_level", "Level.").Set(-1.5);
  const Histogram histogram = registry.AddHistogram("atoll_wait_seconds", "Wait.", {0.1, 1});
  histogram.Observe(0.05);
  histogram.Observe(5);
  const std::string text = registry.Text();
  EXPECT_THAT(text, HasSubstr("# HELP atoll_things_total Things.\n# TYPE atoll_things_total counter\n"));
  EXPECT_THAT(text, HasSubstr("atoll_things_total{kind=\"good\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("atoll_level -1.5\n"));
  EXPECT_THAT(text, HasSubstr("atoll_wait_seconds_bucket{le=\"0.1\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("atoll_wait_seconds_bucket{le=\"+Inf\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("atoll_wait_seconds_count 2\n"));
}

TEST(MetricsTest, WhatIsNoCountIsIgnored) {
  MetricsRegistry registry;
  const Counter counter = registry.AddCounter("atoll_things_total", "Things.");
  counter.Increment(-1);
  counter.Increment(std::nan(""));
  counter.Increment(std::numeric_limits<double>::infinity());
  registry.AddHistogram("atoll_wait_seconds", "Wait.", {1}).Observe(std::nan(""));
  EXPECT_THAT(registry.Text(), HasSubstr("atoll_things_total 0\n"));
  EXPECT_THAT(registry.Text(), HasSubstr("atoll_wait_seconds_count 0\n"));
}

TEST(MetricsTest, HandlesOfNothingCountNothing) {
  Counter().Increment();
  Gauge().Set(1);
  Histogram().Observe(1);
}

TEST(MetricsTest, ASeriesThatIsRemovedIsGoneAndTheOthersStay) {
  MetricsRegistry registry;
  const Gauge a = registry.AddGauge("atoll_level", "Level.", {{"worker", "a"}});
  const Gauge b = registry.AddGauge("atoll_level", "Level.", {{"worker", "b"}});
  a.Set(1);
  b.Set(2);
  registry.RemoveGauge("atoll_level", a);
  EXPECT_THAT(registry.Text(), Not(HasSubstr("worker=\"a\"")));
  EXPECT_THAT(registry.Text(), HasSubstr("atoll_level{worker=\"b\"} 2\n"));
  EXPECT_THAT(registry.Text(), HasSubstr("# HELP atoll_level Level.\n"));
}

TEST(MetricsTest, RefreshesBeforeEachScrapeUntilStopped) {
  MetricsRegistry registry;
  const Gauge gauge = registry.AddGauge("atoll_level", "Level.");
  int scrapes = 0;
  registry.BeforeScrape([&] { gauge.Set(++scrapes); });
  EXPECT_THAT(registry.Text(), HasSubstr("atoll_level 1\n"));
  EXPECT_THAT(registry.Text(), HasSubstr("atoll_level 2\n"));
  registry.StopRefreshing();
  EXPECT_THAT(registry.Text(), HasSubstr("atoll_level 2\n"));
  EXPECT_EQ(scrapes, 2);
}

TEST(MetricsTest, CountsFromManyThreadsWhileScraped) {
  MetricsRegistry registry;
  const Counter counter = registry.AddCounter("atoll_things_total", "Things.");
  std::atomic<bool> stop{false};
  std::thread scraper([&] {
    while (!stop) EXPECT_THAT(registry.Text(), HasSubstr("atoll_things_total"));
  });
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&counter] {
      for (int i = 0; i < 1000; ++i) counter.Increment();
    });
  }
  for (std::thread& thread : threads) thread.join();
  stop = true;
  scraper.join();
  EXPECT_THAT(registry.Text(), HasSubstr("atoll_things_total 4000\n"));
}

TEST(MetricsTest, AMirroredCounterFollowsATotalAndBeginsAnewWithIt) {
  MetricsRegistry registry;
  MirroredCounter counter(&registry, "atoll_things_total", "Things.", {{"worker", "a"}});
  counter.Follow(5);
  counter.Follow(7);
  counter.Follow(std::nan(""));
  EXPECT_THAT(registry.Text(), HasSubstr("atoll_things_total{worker=\"a\"} 7\n"));
  counter.Follow(2);
  EXPECT_THAT(registry.Text(), HasSubstr("atoll_things_total{worker=\"a\"} 2\n"));
  counter.Remove();
  counter.Follow(3);
  EXPECT_THAT(registry.Text(), Not(HasSubstr("worker=\"a\"")));
}

TEST(MetricsTest, FamiliesAreKnownBeforeTheirSeries) {
  MetricsRegistry registry;
  registry.Declare(MetricType::kGauge, "atoll_level", "Level.", {"worker"});
  EXPECT_EQ(registry.Text(), "");
  registry.AddGauge("atoll_level", "", {{"worker", "a"}}).Set(1);
  EXPECT_THAT(registry.Text(), HasSubstr("# HELP atoll_level Level.\n"));
  registry.AddCounter("atoll_things_total", "Things.", {{"kind", "good"}});
  registry.AddCounter("atoll_things_total", "Things.", {{"kind", "bad"}});
  const std::vector<MetricFamily> families = registry.Families();
  ASSERT_EQ(families.size(), 2u);
  EXPECT_EQ(families[0].name, "atoll_level");
  EXPECT_TRUE(families[0].labels.at("worker").empty()) << "open values are not collected";
  EXPECT_EQ(families[1].type, MetricType::kCounter);
  EXPECT_EQ(families[1].labels.at("kind"), (std::set<std::string>{"good", "bad"}));
}

TEST(MetricsTest, PromtoolHasTeeth) {
  if (!HavePromtool()) GTEST_SKIP() << "promtool is not installed";
  MetricsRegistry registry;
  registry.AddCounter("atoll_things", "A counter without _total.");
  EXPECT_THAT(PromtoolComplaints(registry.Text()), HasSubstr("_total"));
}

}  // namespace
}  // namespace atl
