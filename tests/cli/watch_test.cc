// How `atollctl watch --until-finished` ends: at the run's end, with a coordinator that leaves, without an
// answer.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/file_descriptor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cli/atollctl.h"
#include "tests/cli/fake_admin.h"

namespace atl {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

v1::GetStatusReply StatusOf(v1::RunState state, uint64_t version) {
  v1::GetStatusReply status;
  status.set_state(state);
  status.add_fragments()->set_version(version);
  return status;
}

std::string LastLine(const std::string& text) {
  if (text.empty()) return "";
  const size_t before = text.find_last_of('\n', text.size() - 2);
  return text.substr(before == std::string::npos ? 0 : before + 1);
}

/// Runs `watch --until-finished` with more arguments, and ends the coordinator after two queries.
Outcome WatchUntilCoordinatorLeaves(const v1::GetStatusReply& last,
                                    const std::vector<std::string>& more = {}) {
  auto admin = std::make_unique<FakeAdmin>();
  admin->status = last;
  const Atollctl atollctl({"--admin", admin->address(), "--timeout", "0.5"});
  std::vector<std::string> arguments = {"watch", "--until-finished", "--interval", "0.1"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  Outcome outcome;
  std::thread watching([&] { outcome = atollctl.Run(arguments); });
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (admin->calls().size() < 4 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  EXPECT_GE(admin->calls().size(), 4u);
  admin.reset();
  watching.join();
  return outcome;
}

TEST(Watch, PrintsTheEndThatComesBetweenTwoLines) {
  FakeAdmin admin;
  admin.earlier_statuses = {StatusOf(v1::RUN_STATE_TRAINING, 7)};
  admin.status = StatusOf(v1::RUN_STATE_FINISHED, 8);
  admin.status.add_evaluations()->set_version(8);
  const Atollctl atollctl({"--admin", admin.address(), "--timeout", "10"});
  const std::vector<std::string> watch = {"watch", "--until-finished", "--interval", "0.1"};
  const Outcome lines = atollctl.Run(watch);
  EXPECT_EQ(lines.exit_code, 0) << lines.err;
  EXPECT_THAT(lines.out, StartsWith("training: version 7"));
  EXPECT_THAT(LastLine(lines.out), StartsWith("finished: version 8 after "));
}

TEST(Watch, ALogGetsALineWhenSomethingChanges) {
  FakeAdmin admin;
  v1::GetStatusReply eighth = StatusOf(v1::RUN_STATE_TRAINING, 8);
  v1::GetStatusReply joined = eighth;
  joined.set_live_trainers(2);
  for (const auto& status : {StatusOf(v1::RUN_STATE_TRAINING, 7), eighth, joined}) {
    for (int i = 0; i < 5; ++i) admin.earlier_statuses.push_back(status);
  }
  admin.status = StatusOf(v1::RUN_STATE_STOPPED, 9);
  const Atollctl atollctl({"--admin", admin.address(), "--timeout", "10"});
  const Outcome lines =
      atollctl.Run({"watch", "--until-finished", "--interval", "0.1", "--line-interval", "0.1"});
  EXPECT_EQ(lines.exit_code, 0) << lines.err;
  const std::vector<std::string> printed = absl::StrSplit(lines.out, '\n', absl::SkipEmpty());
  EXPECT_THAT(printed, ElementsAre(StartsWith("training: version 7"),
                                   AllOf(StartsWith("training: version 8"), HasSubstr("0 workers")),
                                   AllOf(StartsWith("training: version 8"), HasSubstr("2 workers")),
                                   StartsWith("stopped: version 9")));
}

TEST(Watch, PrintsTheEndAsJson) {
  FakeAdmin admin;
  admin.earlier_statuses = {StatusOf(v1::RUN_STATE_TRAINING, 7)};
  admin.status = StatusOf(v1::RUN_STATE_STOPPED, 8);
  const Atollctl atollctl({"--admin", admin.address(), "--timeout", "10", "--json"});
  const Outcome json = atollctl.Run({"watch", "--until-finished", "--interval", "0.1"});
  EXPECT_EQ(json.exit_code, 0) << json.err;
  EXPECT_THAT(LastLine(json.out), HasSubstr("RUN_STATE_STOPPED"));
}

TEST(Watch, ACoordinatorMayLeaveAFinishedRunBeforeItsEvaluation) {
  const Outcome outcome = WatchUntilCoordinatorLeaves(StatusOf(v1::RUN_STATE_FINISHED, 8));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(LastLine(outcome.out), StartsWith("finished: version 8 after "));
  EXPECT_THAT(outcome.err, Not(HasSubstr("away")));
}

TEST(Watch, GivesUpOnADeadAddressWhenItIsToldTo) {
  const std::string dead = FakeAdmin().address();  // nobody listens there now
  const Atollctl atollctl({"--admin", dead, "--timeout", "50"});
  const auto start = std::chrono::steady_clock::now();
  const Outcome outcome = atollctl.Run({"watch", "--give-up-after", "1"});
  EXPECT_EQ(outcome.exit_code, 3) << outcome.err;
  EXPECT_THAT(outcome.err, ContainsRegex("tried for [0-9]+\\.[0-9] s"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(40));
}

TEST(Watch, SaysHowLongItTried) {
  // Takes connections and never says a word: each look at it ends only at its timeouts, of 2 s.
  const FileDescriptor silent(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ASSERT_EQ(::bind(silent.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::getsockname(silent.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  ASSERT_EQ(::listen(silent.get(), 64), 0);
  const Atollctl atollctl({"--admin", absl::StrCat("127.0.0.1:", ntohs(address.sin_port))});
  const Outcome outcome = atollctl.Run({"watch", "--give-up-after", "1"});
  EXPECT_EQ(outcome.exit_code, 3) << outcome.err;
  const size_t tried = outcome.err.find("tried for ");
  ASSERT_NE(tried, std::string::npos) << outcome.err;
  EXPECT_GE(std::stod(outcome.err.substr(tried + 10)), 2.0) << outcome.err;
}

TEST(Watch, SaysThatItCannotKnowTheEnd) {
  const Outcome outcome =
      WatchUntilCoordinatorLeaves(StatusOf(v1::RUN_STATE_TRAINING, 7), {"--give-up-after", "0.2"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("training: version 7"), HasSubstr("may have finished since"),
                                 HasSubstr("atollctl status"), HasSubstr("--give-up-after")));
}

}  // namespace
}  // namespace atl
