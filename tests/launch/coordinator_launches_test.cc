// atoll-coordinator as a program, with workers that are shell scripts, or pods of a server that plays the
// cluster.
#include <signal.h>

#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/coordinator_program.h"
#include "tests/launch/api_server.h"
#include "tests/launch/wait_until.h"
#include "tests/paths.h"

namespace atl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CoordinatorLaunchesTest : public CoordinatorProgram {
 protected:
  bool Logged(const std::string& text) const {
    return WaitUntil([&] { return Log().find(text) != std::string::npos; });
  }
  std::string Written(const std::string& worker) const {
    return ReadFile(dir_.File("data/workers/" + worker + ".log")).value_or("");
  }
  pid_t PidOf(const std::string& worker) const {
    const std::string text = Written(worker);
    return text.empty() ? 0 : std::stoi(text);
  }
  std::vector<std::string> ShellWorkers(const std::string& script) const {
    return {"--config",        dir_.File("run.yaml"),    "--launcher",
            "process",         "--worker-command",       "/bin/sh",
            "--worker-arg=-c", "--worker-arg=" + script, "--worker-arg={name}"};
  }
  std::vector<std::string> PodsOf(const ApiServer& server) const {
    const KubernetesApiOptions api = server.Options();
    return {"--config",           dir_.File("run.yaml"),
            "--launcher",         "kubernetes",
            "--kube-api-host",    api.host,
            "--kube-api-port",    api.port,
            "--kube-credentials", api.credentials,
            "--kube-statefulset", "train-worker",
            "--kube-selector",    "app.kubernetes.io/name=train"};
  }
};

TEST_F(CoordinatorLaunchesTest, LaunchesThePlannedWorkersAndEndsThemBeforeItself) {
  const auto process = Serve(ShellWorkers("echo $$ $0 $*; exec sleep 600"));
  ASSERT_NE(process, nullptr);
  ASSERT_TRUE(WaitUntil([&] { return PidOf("w0") > 0 && PidOf("w1") > 0; })) << Log();
  EXPECT_THAT(Written("w1"), HasSubstr("w1 --coordinator " + Address("data") + " --name w1 --state-dir " +
                                       dir_.File("data/workers/w1")));
  EXPECT_FALSE(FileExists(dir_.File("data/workers/w2.log")));
  const pid_t first = PidOf("w0"), second = PidOf("w1");
  ::kill(first, SIGKILL);
  EXPECT_TRUE(Logged("w0 ended: killed by SIGKILL"));
  EXPECT_TRUE(Logged("w1 started (process "));
  process->Signal(SIGTERM);
  EXPECT_EQ(process->Wait(Seconds(60)), 0) << Log();
  EXPECT_TRUE(Gone(second));
  EXPECT_THAT(Log(), HasSubstr("w1 was stopped: killed by SIGTERM"));
  EXPECT_LT(Log().find("w1 was stopped"), Log().find("refusing new work"));
}

TEST_F(CoordinatorLaunchesTest, WorkersDoNotOutliveACoordinatorThatIsKilled) {
  std::vector<std::string> extra =
      ShellWorkers("trap '' TERM HUP INT; echo $$; while :; do sleep 0.05; done");
  extra.insert(extra.end(), {"--launch-workers", "3"});
  const auto process = Serve(extra);
  ASSERT_NE(process, nullptr);
  ASSERT_TRUE(WaitUntil([&] { return PidOf("w0") > 0 && PidOf("w1") > 0 && PidOf("w2") > 0; })) << Log();
  process->Kill();
  for (const char* worker : {"w0", "w1", "w2"}) {
    EXPECT_TRUE(WaitUntil([&] { return Gone(PidOf(worker)); })) << worker;
  }
}

TEST_F(CoordinatorLaunchesTest, WhatWasScaledToRunsAgainAfterAKill) {
  const std::vector<std::string> extra = ShellWorkers("echo $$; exec sleep 600");
  std::unique_ptr<Process> process = Serve(extra);
  ASSERT_NE(process, nullptr);
  const Finished scaled = RunToEnd(
      {(ATOLL_BIN_DIR "/atollctl"), "--admin", Address("admin"), "workers", "add", "1"}, Seconds(60));
  ASSERT_EQ(scaled.exit_code, 0) << scaled.output;
  ASSERT_TRUE(WaitUntil([&] { return PidOf("w2") > 0; })) << Log();
  process->Kill();
  for (const char* worker : {"w0", "w1", "w2"}) {
    ASSERT_TRUE(WaitUntil([&] { return Gone(PidOf(worker)); })) << worker;
    ASSERT_TRUE(RemoveFile(dir_.File("data/workers/" + std::string(worker) + ".log")).ok());
  }
  process = Serve(extra);
  ASSERT_NE(process, nullptr);
  EXPECT_TRUE(WaitUntil([&] { return PidOf("w0") > 0 && PidOf("w1") > 0 && PidOf("w2") > 0; })) << Log();
  process->Signal(SIGTERM);
  EXPECT_EQ(process->Wait(Seconds(60)), 0) << Log();
}

TEST_F(CoordinatorLaunchesTest, StatusAndWorkersSayWhyNoWorkerJoins) {
  const auto process = Serve(ShellWorkers("echo no such file >&2; exit 6"));
  ASSERT_NE(process, nullptr);
  const auto shown = [&](const std::vector<std::string>& command) {
    std::vector<std::string> all = {(ATOLL_BIN_DIR "/atollctl"), "--admin", Address("admin")};
    all.insert(all.end(), command.begin(), command.end());
    std::string text = RunToEnd(all, Seconds(60)).output;
    std::erase(text, '\n');
    return text;
  };
  const auto says_why =
      AllOf(HasSubstr("ended: exit code 6 (token or model files) after "), HasSubstr("times in a row"),
            HasSubstr("its log: " + dir_.File("data/workers/w")), HasSubstr("atollctl launcher"));
  // While a worker's next life lasts there is no trouble.
  const auto does = [&](const std::vector<std::string>& command) {
    return WaitUntil([&] { return testing::Value(shown(command), says_why); });
  };
  EXPECT_TRUE(does({"status"})) << shown({"status"});
  EXPECT_TRUE(does({"status", "--json"})) << shown({"status", "--json"});
  EXPECT_TRUE(does({"workers", "list"})) << shown({"workers", "list"});
  EXPECT_TRUE(WaitUntil([&] {
    return testing::Value(shown({"launcher"}), HasSubstr("its log: " + dir_.File("data/workers/w")));
  })) << shown({"launcher"});
  EXPECT_THAT(shown({"status", "--json"}), HasSubstr("waiting for a worker to join and seed the parameters"));
  process->Signal(SIGTERM);
  EXPECT_EQ(process->Wait(Seconds(60)), 0) << Log();
}

TEST_F(CoordinatorLaunchesTest, AsksTheClusterAndLeavesItsPods) {
  auto server = ApiServer::Start();
  ASSERT_TRUE(server.ok()) << server.status();
  std::vector<std::string> flags = PodsOf(**server);
  flags.insert(flags.end(), {"--launch-workers", "3"});
  const auto process = Serve(flags);
  ASSERT_NE(process, nullptr);
  ASSERT_TRUE(WaitUntil([&] { return !(*server)->Requests("PATCH").empty(); })) << Log();
  EXPECT_EQ((*server)->Requests("PATCH")[0]["body"], R"({"spec":{"replicas":3}})");
  process->Signal(SIGTERM);
  EXPECT_EQ(process->Wait(Seconds(60)), 0) << Log();
  EXPECT_THAT((*server)->Requests("DELETE"), IsEmpty());
  EXPECT_EQ((*server)->Requests("PATCH").size(), 1u);
  EXPECT_EQ(Log().find("secret-1"), std::string::npos);
}

TEST_F(CoordinatorLaunchesTest, ANewLifeAsksTheClusterForWhatWasScaledTo) {
  auto server = ApiServer::Start();
  ASSERT_TRUE(server.ok()) << server.status();
  const auto last = [&] {
    const auto patches = (*server)->Requests("PATCH");
    return patches.empty() ? std::string() : patches.back()["body"].get<std::string>();
  };
  // Nobody says how many: run.workers.
  std::unique_ptr<Process> process = Serve(PodsOf(**server));
  ASSERT_NE(process, nullptr);
  ASSERT_TRUE(WaitUntil([&] { return last() == R"({"spec":{"replicas":2}})"; })) << Log();
  const Finished scaled = RunToEnd(
      {(ATOLL_BIN_DIR "/atollctl"), "--admin", Address("admin"), "workers", "scale", "5"}, Seconds(60));
  ASSERT_EQ(scaled.exit_code, 0) << scaled.output;
  process->Kill();
  const size_t before = (*server)->Requests("PATCH").size();
  process = Serve(PodsOf(**server));
  ASSERT_NE(process, nullptr);
  ASSERT_TRUE(WaitUntil([&] { return (*server)->Requests("PATCH").size() > before; })) << Log();
  EXPECT_EQ(last(), R"({"spec":{"replicas":5}})");
  process->Signal(SIGTERM);
  EXPECT_EQ(process->Wait(Seconds(60)), 0) << Log();
}

TEST_F(CoordinatorLaunchesTest, WrongFlagsTouchNothing) {
  const auto fails = [&](const std::vector<std::string>& extra, const std::string& why) {
    std::vector<std::string> all = {"--config", dir_.File("run.yaml")};
    all.insert(all.end(), extra.begin(), extra.end());
    const Finished finished = Run(all);
    EXPECT_EQ(finished.exit_code, 2) << finished.output;
    EXPECT_THAT(finished.output, HasSubstr(why));
  };
  fails({"--launch-workers", "2"}, "--launch-workers needs --launcher");
  fails({"--worker-arg=--data=tokens"}, "--worker-arg has no effect with --launcher none");
  fails({"--worker-state-dir", dir_.File("states")},
        "give --launcher process, or leave --worker-state-dir out");
  fails({"--launcher", "kubernetes", "--worker-grace", "3"}, "--worker-grace has no effect");
  fails({"--launcher", "process", "--kube-selector", "app=x"}, "--kube-selector has no effect");
  fails({"--launcher", "process", "--worker-command", "/no/such/worker"}, "/no/such/worker");
  fails({"--launcher", "process", "--worker-command", "/bin/sh", "--worker-prefix", "W"}, "W0");
  fails({"--launcher", "kubernetes", "--kube-api-host", ""}, "KUBERNETES_SERVICE_HOST");
  fails({"--launcher", "kubernetes", "--kube-api-host", "x", "--kube-credentials", dir_.path()}, "/token");
  fails({"--launcher", "nonsense"}, "nonsense");
  EXPECT_FALSE(FileExists(dir_.File("data")));
  EXPECT_THAT(RunToEnd({kProgram, "--help"}, Seconds(60)).output,
              AllOf(HasSubstr("--launcher"), HasSubstr("--worker-arg"), HasSubstr("--kube-statefulset")));
}

TEST_F(CoordinatorLaunchesTest, WorkersFilesDoNotGoIntoTheRunsOwnFolders) {
  const std::string data = dir_.File("data");
  const auto fails = [&](const std::string& option, const std::string& folder, const std::string& why) {
    const Finished finished = Run({"--config", dir_.File("run.yaml"), "--launcher", "process",
                                   "--worker-command", "/bin/sh", option, folder});
    EXPECT_EQ(finished.exit_code, 2) << finished.output;
    EXPECT_THAT(finished.output, AllOf(HasSubstr(option + " " + folder), HasSubstr(why)));
  };
  std::filesystem::create_directory_symlink(data, dir_.File("link"));
  const auto fails_everywhere = [&] {
    fails("--worker-state-dir", data + "/shards/workers", "lies in " + data + "/shards");
    fails("--worker-state-dir", data + "/meta", "leave the option out: " + data + "/workers");
    fails("--worker-log-dir", data + "/contributions/../checkpoints/logs",
          "lies in " + data + "/checkpoints");
    fails("--worker-log-dir", "/dev/null", "/dev/null is not a folder");
    fails("--worker-log-dir", dir_.File("run.yaml") + "/logs", dir_.File("run.yaml") + " is not a folder");
  };
  fails_everywhere();
  fails("--worker-log-dir", dir_.File("link"), "a symbolic link to a folder that does not exist");
  EXPECT_FALSE(FileExists(data)) << "before anything is written";
  auto process = Serve({"--config", dir_.File("run.yaml")});
  ASSERT_NE(process, nullptr);
  process->Signal(SIGTERM);
  ASSERT_EQ(process->Wait(Seconds(60)), 0) << Log();
  fails_everywhere();
  fails("--worker-log-dir", dir_.File("link") + "/meta", "lies in " + data + "/meta");
  std::filesystem::rename(data + "/shards", dir_.File("disk"));
  std::filesystem::create_directory_symlink(dir_.File("disk"), data + "/shards");
  fails("--worker-log-dir", dir_.File("disk") + "/logs", "lies in " + data + "/shards");
  const Finished of_another = Run({"--config", dir_.File("run.yaml"), "--data-dir", dir_.File("other"),
                                   "--launcher", "process", "--worker-log-dir", data + "/meta"});
  EXPECT_EQ(of_another.exit_code, 2) << of_another.output;
  EXPECT_THAT(of_another.output, HasSubstr("lies in " + data + "/meta"));
}

}  // namespace
}  // namespace atl
