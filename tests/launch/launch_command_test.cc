#include "server/launch/launch_command.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace atl {
namespace {

using ::testing::ElementsAre;

TEST(LaunchCommandTest, PutsWhatTheWorkerNeedsBehindTheArguments) {
  LaunchCommand command;
  command.program = "/opt/atoll-worker";
  command.arguments = {"--threads=1"};
  command.state_root = "/run1/workers";
  EXPECT_THAT(CommandLine(command, "w3", 3, "127.0.0.1:7600"),
              ElementsAre("/opt/atoll-worker", "--threads=1", "--coordinator", "127.0.0.1:7600", "--name",
                          "w3", "--state-dir", "/run1/workers/w3"));
}

TEST(LaunchCommandTest, ReplacesPlaceholdersInArguments) {
  LaunchCommand command;
  command.program = "ssh";
  command.arguments = {"host{number}",  "atoll-worker",  "--data=/d/{name}",
                       "{coordinator}", "{state_dir}/x", "{other}"};
  command.state_root = "s";
  const auto line = CommandLine(command, "w12", 12, "10.0.0.1:7600");
  EXPECT_THAT(
      std::vector<std::string>(line.begin(), line.begin() + 7),
      ElementsAre("ssh", "host12", "atoll-worker", "--data=/d/w12", "10.0.0.1:7600", "s/w12/x", "{other}"));
}

TEST(LaunchCommandTest, NumbersAndNamesAreTheSame) {
  EXPECT_EQ(NumberedName("w", 7), "w7");
  EXPECT_EQ(NumberOf("w", "w7"), 7u);
  EXPECT_EQ(NumberOf("atoll-worker-", "atoll-worker-120"), 120u);
  for (const char* name : {"w", "w07", "w+7", "w 7", "w-7", "w7x", "v7", "w4294967296", ""}) {
    EXPECT_EQ(NumberOf("w", name), std::nullopt) << name;
  }
}

}  // namespace
}  // namespace atl
