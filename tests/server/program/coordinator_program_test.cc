// atoll-coordinator as a program: what it prints, where it listens, how it ends.
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <sstream>
#include <thread>

#include "absl/strings/str_replace.h"
#include "common/file.h"
#include "common/file_descriptor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/http_get.h"
#include "tests/fakes/promtool.h"
#include "tests/integration/coordinator_program.h"
#include "tests/server/rpc/generic_calls.h"

namespace atl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using CoordinatorProgramTest = CoordinatorProgram;

TEST_F(CoordinatorProgramTest, HelpTeachesAndVersionIsOneLine) {
  const Finished help = RunToEnd({kProgram, "--help"}, Seconds(60));
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.output, AllOf(HasSubstr("atoll-coordinator --config run.yaml --data-dir"),
                                 HasSubstr("--port-file"), HasSubstr("Exit codes")));
  const Finished version = RunToEnd({kProgram, "--version"}, Seconds(60));
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_THAT(version.output, HasSubstr("atoll-coordinator "));
  EXPECT_EQ(RunToEnd({kProgram, "--no-such-flag"}, Seconds(60)).exit_code, 2);
}

TEST_F(CoordinatorProgramTest, ServesUntilItIsToldToStop) {
  const auto process = Serve({"--config", dir_.File("run.yaml")});
  ASSERT_NE(process, nullptr);
  EXPECT_EQ(ports_.at("pid"), process->pid());
  const std::string answer = HttpGet(PortOf("metrics"), "/metrics");
  EXPECT_THAT(answer, AllOf(HasSubstr("200 OK"), HasSubstr("atoll_run_state{state=\"starting\"} 1"),
                            HasSubstr("program=\"atoll-coordinator\"")));
  if (HavePromtool()) {
    EXPECT_EQ(PromtoolComplaints(answer.substr(answer.find("\r\n\r\n") + 4)), "");
  }
  process->Signal(SIGTERM);
  EXPECT_EQ(process->Wait(Seconds(60)), 0) << Log();
  EXPECT_THAT(Log(), HasSubstr("stopped"));
}

TEST_F(CoordinatorProgramTest, AHangupEndsItCleanly) {
  const auto process = Serve({"--config", dir_.File("run.yaml")});
  ASSERT_NE(process, nullptr);
  process->Signal(SIGHUP);
  EXPECT_EQ(process->Wait(Seconds(60)), 0) << Log();
  EXPECT_THAT(Log(), HasSubstr("stopped"));
}

TEST_F(CoordinatorProgramTest, LostTokensAreToldAndWhatIsNoFileIsRejected) {
  const std::string tokens = dir_.File("data/access/tokens.json");
  for (int life = 0; life < 2; ++life) {
    const auto process = Serve({"--config", dir_.File("run.yaml")});
    ASSERT_NE(process, nullptr);
    process->Signal(SIGTERM);
    EXPECT_EQ(process->Wait(Seconds(60)), 0) << Log();
    EXPECT_EQ(Log().find("the tokens of this run are lost") != std::string::npos, life == 1) << Log();
    ASSERT_TRUE(RemoveFile(tokens).ok());
  }
  ASSERT_TRUE(CreateDirs(tokens).ok());
  const Finished rejected = Run({"--config", dir_.File("run.yaml")});
  EXPECT_EQ(rejected.exit_code, 6) << rejected.output;
  EXPECT_THAT(rejected.output, AllOf(HasSubstr(tokens), HasSubstr("replace it by a backup")));
}

TEST_F(CoordinatorProgramTest, AnswersAKubeletOnAPortOfItsOwn) {
  const auto process = Serve({"--config", dir_.File("run.yaml"), "--health-listen", "127.0.0.1:0"});
  ASSERT_NE(process, nullptr);
  const auto channel = grpc::CreateChannel(Address("health"), grpc::InsecureChannelCredentials());
  EXPECT_EQ(HealthOf(channel, "live"), 1);
  EXPECT_EQ(HealthOf(channel, ""), 1);
  process->Signal(SIGTERM);
  EXPECT_EQ(process->Wait(Seconds(60)), 0) << Log();
}

TEST_F(CoordinatorProgramTest, GoesOnWithTheConfigurationThatTheRunRemembers) {
  const Finished nothing = Run({});
  EXPECT_EQ(nothing.exit_code, 2);
  EXPECT_THAT(nothing.output, AllOf(HasSubstr("there is no run in"), HasSubstr("--config FILE")));
  EXPECT_FALSE(FileExists(dir_.File("data")));
  for (const std::vector<std::string>& extra :
       {std::vector<std::string>{"--config", dir_.File("run.yaml")}, std::vector<std::string>{}}) {
    const auto process = Serve(extra);
    ASSERT_NE(process, nullptr);
    process->Signal(SIGINT);
    EXPECT_EQ(process->Wait(Seconds(60)), 0) << Log();
  }
}

// A default that changed with a release is for new runs: codec.pull_delta is fixed when a run begins.
TEST_F(CoordinatorProgramTest, ARunKeepsWhatItsFileLeavesToADefaultThatChanged) {
  const std::string codecs = "codec: {push: fp32, pull_delta: none}\n";
  ASSERT_THAT(kConfig, HasSubstr(codecs));
  const auto stopped = [&](const std::string& yaml) {
    EXPECT_TRUE(WriteFileAtomically(dir_.File("run.yaml"), yaml).ok());
    const auto process = Serve({"--config", dir_.File("run.yaml")});
    if (process == nullptr) return false;
    process->Signal(SIGTERM);
    return process->Wait(Seconds(60)) == 0;
  };
  ASSERT_TRUE(stopped(kConfig));
  EXPECT_TRUE(stopped(absl::StrReplaceAll(kConfig, {{codecs, ""}}))) << Log();
  EXPECT_TRUE(stopped(absl::StrReplaceAll(kConfig, {{codecs, "codec: {push: int8}\n"}}))) << Log();
  ASSERT_TRUE(WriteFileAtomically(dir_.File("run.yaml"),
                                  absl::StrReplaceAll(kConfig, {{"delta: none", "delta: e3m0"}}))
                  .ok());
  const Finished other = Run({"--config", dir_.File("run.yaml")});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.output, HasSubstr("codec.pull_delta is fixed when a run begins"));
}

TEST_F(CoordinatorProgramTest, WhatCannotWorkTouchesNothing) {
  const std::vector<std::string> config = {"--config", dir_.File("run.yaml")};
  const auto with = [&](const std::vector<std::string>& extra) {
    std::vector<std::string> all = config;
    all.insert(all.end(), extra.begin(), extra.end());
    return Run(all);
  };
  const Finished open = with({"--listen", "0.0.0.0:0"});
  EXPECT_EQ(open.exit_code, 2);
  EXPECT_THAT(open.output, HasSubstr("--insecure-bind"));
  EXPECT_EQ(with({"--admin-listen", "nonsense"}).exit_code, 2);
  EXPECT_EQ(with({"--metrics-listen", "127.0.0.1:99999"}).exit_code, 2);
  EXPECT_EQ(Run({"--config", dir_.File("missing.yaml")}).exit_code, 6);
  ASSERT_TRUE(WriteFileAtomically(dir_.File("bad.yaml"), std::string(kConfig) + "nonsense: 1\n").ok());
  const Finished bad = Run({"--config", dir_.File("bad.yaml")});
  EXPECT_EQ(bad.exit_code, 2);
  EXPECT_THAT(bad.output, HasSubstr("nonsense"));
  EXPECT_FALSE(FileExists(dir_.File("data")));
}

TEST_F(CoordinatorProgramTest, AFailedImportLeavesNoRunBehind) {
  const std::string junk = dir_.File("model.safetensors");
  ASSERT_TRUE(WriteFileAtomically(junk, "no tensors").ok());
  const Finished failed = Run({"--config", dir_.File("run.yaml"), "--import", junk});
  EXPECT_EQ(failed.exit_code, 2);
  EXPECT_THAT(failed.output, HasSubstr(junk));
  const Finished next = Run({});
  EXPECT_EQ(next.exit_code, 2) << "there is nothing to serve: " << next.output;
  EXPECT_THAT(next.output, HasSubstr("--config FILE"));
}

TEST_F(CoordinatorProgramTest, SaysWhatClientsMayTakeOfTheMemory) {
  const auto process = Serve({"--config", dir_.File("run.yaml"), "--memory-limit-mib", "100"});
  ASSERT_NE(process, nullptr);
  EXPECT_THAT(Log(), AllOf(HasSubstr("limit=\"100 MiB\" from=--memory-limit-mib"),
                           HasSubstr("the memory limit of 100 MiB is less than this run needs")));
  process->Signal(SIGTERM);
  EXPECT_EQ(process->Wait(Seconds(60)), 0);
}

TEST_F(CoordinatorProgramTest, JsonLogsAreJson) {
  const auto process = Serve({"--config", dir_.File("run.yaml"), "--log-format", "json"});
  ASSERT_NE(process, nullptr);
  process->Signal(SIGTERM);
  EXPECT_EQ(process->Wait(Seconds(60)), 0);
  std::istringstream lines(Log());
  size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    EXPECT_TRUE(nlohmann::json::accept(line)) << line;
  }
  EXPECT_GE(count, 3u);
}

TEST_F(CoordinatorProgramTest, HasAWebPageUnlessItIsToldNotTo) {
  const auto process = Serve({"--config", dir_.File("run.yaml")});
  ASSERT_NE(process, nullptr);
  EXPECT_THAT(HttpGet(PortOf("web"), "/"), AllOf(HasSubstr("200 OK"), HasSubstr("<!doctype html>")));
  EXPECT_THAT(HttpGet(PortOf("web"), "/api/v1/status"), HasSubstr("\"runName\":\"tiny\""));
  EXPECT_THAT(HttpGet(PortOf("web"), "/api/v1/events"), HasSubstr("COORDINATOR_STARTED"));
  EXPECT_THAT(HttpGet(PortOf("web"), "/api/v1/session"), HasSubstr("DATA_DIR/access/admin.token"));
  const Finished taken = Run({"--config", dir_.File("run.yaml"), "--web-listen", Address("web")});
  EXPECT_EQ(taken.exit_code, 3);
  EXPECT_THAT(taken.output, HasSubstr("in use"));
  EXPECT_EQ(Run({"--config", dir_.File("run.yaml"), "--web-listen", "0.0.0.0:0"}).exit_code, 2);
  process->Signal(SIGTERM);
  EXPECT_EQ(process->Wait(Seconds(60)), 0) << Log();
}

TEST_F(CoordinatorProgramTest, WhenThePagesPortIsTakenItSaysWhichIsFree) {
  // We hold the port from here on. Tests beside this one may have it for a moment; who has it for longer
  // keeps it.
  const FileDescriptor taken(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;  // as the coordinator: connections that have ended do not count
  ASSERT_EQ(::setsockopt(taken.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(7604);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const auto hold = [&] {
    return ::bind(taken.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0 &&
           ::listen(taken.get(), 1) == 0;
  };
  const auto timeout = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!hold() && std::chrono::steady_clock::now() < timeout) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  std::vector<std::string> arguments = Arguments({"--config", dir_.File("run.yaml")});
  const auto option = std::ranges::find(arguments, "--web-listen");
  arguments.erase(option, option + 2);
  const auto process = Process::Start(arguments, dir_.File("log"));
  ASSERT_TRUE(process.ok()) << process.status();
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!FileExists(dir_.File("ports")) && std::chrono::steady_clock::now() < until)
    std::this_thread::yield();
  EXPECT_THAT(Log(), AllOf(HasSubstr("this one is free: --web-listen 127.0.0.1:76"),
                           testing::Not(HasSubstr("UNAVAILABLE"))));
  (*process)->Signal(SIGTERM);
  EXPECT_EQ((*process)->Wait(Seconds(60)), 0) << Log();
}

TEST_F(CoordinatorProgramTest, WithoutMetricsAndPageItHasNoPortsForThem) {
  const auto process = Serve({"--config", dir_.File("run.yaml"), "--metrics-listen", "", "--web-listen", ""});
  ASSERT_NE(process, nullptr);
  EXPECT_EQ(ports_.at("metrics"), "");
  EXPECT_EQ(ports_.at("web"), "");
  process->Signal(SIGTERM);
  EXPECT_EQ(process->Wait(Seconds(60)), 0);
}

}  // namespace
}  // namespace atl
