#include "monitoring/program_metrics.h"

#include <sstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/promtool.h"

namespace atl {
namespace {

using ::testing::HasSubstr;

/// The value of the only series of this name.
double ValueOf(const MetricsRegistry& registry, const std::string& name) {
  std::istringstream lines(registry.Text());
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(name + " ")) return std::stod(line.substr(name.size()));
  }
  ADD_FAILURE() << "no " << name;
  return 0;
}

TEST(ProgramMetricsTest, NamesTheProgramAndPromtoolAgrees) {
  MetricsRegistry registry;
  AddProgramMetrics(&registry, "atoll-test");
  EXPECT_THAT(registry.Text(), HasSubstr("program=\"atoll-test\""));
  if (!HavePromtool()) GTEST_SKIP() << "promtool is not installed";
  EXPECT_EQ(PromtoolComplaints(registry.Text()), "");
}

TEST(ProgramMetricsTest, SaysWhatTheProcessUsesNow) {
  MetricsRegistry registry;
  AddProgramMetrics(&registry, "atoll-test");
  EXPECT_GT(ValueOf(registry, "process_start_time_seconds"), 1.7e9);
  EXPECT_GT(ValueOf(registry, "process_resident_memory_bytes"), 1 << 20);
  const double files = ValueOf(registry, "process_open_fds");
  EXPECT_GE(files, 3);
  EXPECT_LT(files, ValueOf(registry, "process_max_fds"));
  const double before = ValueOf(registry, "process_cpu_seconds_total");
  double spent = before;
  for (int i = 0; spent < before + 0.01 && i < 100000; ++i) {
    spent = ValueOf(registry, "process_cpu_seconds_total");  // which costs some
  }
  EXPECT_GT(spent, before);
}

}  // namespace
}  // namespace atl
