// atollctl against a real coordinator: what the fake in admin_commands_test.cc stands for is what the server
// does.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/file_descriptor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/cli/atollctl.h"
#include "tests/integration/process.h"
#include "tests/paths.h"

namespace atl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kConfig[] = R"(
run: {name: tiny, workers: 2, rounds: 3}
model: {gpt: {layers: 1, heads: 1, width: 32, context: 16, vocabulary: 256}}
data: {tokenizer: bytes}
inner: {steps: 2, learning_rate: 1e-3, batch: 2}
codec: {push: fp32, pull_delta: none}
)";

class CoordinatorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(WriteFileAtomically(dir_.File("run.yaml"), kConfig).ok());
    Start({"atoll-coordinator", "--config", dir_.File("run.yaml"), "--data-dir", dir_.File("data"),
           "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"});
  }
  /// Runs the program of this name until its ports are known.
  void Start(std::vector<std::string> command) {
    command[0] = ATOLL_BIN_DIR "/" + command[0];
    command.insert(command.end(), {"--metrics-listen", "", "--port-file", dir_.File("ports")});
    RemoveFile(dir_.File("ports")).IgnoreError();
    auto started = Process::Start(command, dir_.File("log"));
    ASSERT_TRUE(started.ok()) << started.status();
    process_ = *std::move(started);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!FileExists(dir_.File("ports"))) {
      ASSERT_TRUE(process_->running() && std::chrono::steady_clock::now() < deadline)
          << ReadFile(dir_.File("log")).value_or("");
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    const auto ports = nlohmann::json::parse(ReadFile(dir_.File("ports")).value());
    first_ = {"--admin", ports["admin"], "--coordinator", ports["data"]};
  }
  void Stop() {
    process_->Signal(SIGTERM);
    EXPECT_EQ(process_->Wait(Seconds(60)), 0);
    process_ = nullptr;
  }
  void TearDown() override {
    if (process_ != nullptr) Stop();
  }

  Outcome Run(const std::vector<std::string>& arguments) { return Atollctl(first_).Run(arguments); }

  TestDir dir_;
  std::unique_ptr<Process> process_;
  std::vector<std::string> first_;
};

TEST_F(CoordinatorTest, PausesResumesAndNamesWhoDidIt) {
  EXPECT_EQ(Run({"--user", "alice", "run", "pause", "--reason", "power"}).exit_code, 0);
  EXPECT_THAT(Run({"status"}).out, AllOf(HasSubstr("paused by alice"), HasSubstr("power")));
  EXPECT_EQ(Run({"run", "pause"}).exit_code, 5) << "it is paused";
  EXPECT_EQ(Run({"run", "resume"}).exit_code, 0);
  EXPECT_EQ(Run({"run", "close-round"}).exit_code, 5) << "there is none";
  EXPECT_EQ(Run({"run", "stop", "--yes"}).exit_code, 0);
  EXPECT_THAT(Run({"status"}).out, HasSubstr("stopped by tester"));
  EXPECT_THAT(Run({"events"}).out,
              AllOf(HasSubstr("ADMIN_ACTION"), HasSubstr("alice"), HasSubstr("RUN_STOPPED")));
}

TEST_F(CoordinatorTest, NamesThePortThatACommandNeeds) {
  const std::string admin = first_[1], data = first_[3];
  const Outcome events = Atollctl({"--coordinator", admin}).Run({"events"});
  EXPECT_EQ(events.exit_code, 5) << events.err;
  EXPECT_THAT(events.err, HasSubstr("goes to its data port (--coordinator): either this is its admin port"));
  const Outcome status = Atollctl({"--admin", data}).Run({"status"});
  EXPECT_THAT(status.err, HasSubstr("goes to its admin port (--admin): either this is its data port"));
}

TEST_F(CoordinatorTest, WatchSaysSoonThatTheCoordinatorIsAway) {
  const std::string log = dir_.File("watch.log");
  auto watch =
      Process::Start({(ATOLL_BIN_DIR "/atollctl"), "--admin", first_[1], "--timeout", "600", "watch"}, log);
  ASSERT_TRUE(watch.ok()) << watch.status();
  const auto logged = [&](const std::string& text) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (ReadFile(log).value_or("").find(text) == std::string::npos) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return true;
  };
  ASSERT_TRUE(logged("starting: version 0")) << ReadFile(log).value_or("");
  EXPECT_TRUE(logged("waiting for a worker to join and seed the parameters"));
  process_->Kill();
  process_ = nullptr;
  EXPECT_TRUE(logged("coordinator away, trying again (no answer for ")) << ReadFile(log).value_or("");
  (*watch)->Signal(SIGINT);
  EXPECT_TRUE((*watch)->Wait(Seconds(60)).has_value());
}

TEST_F(CoordinatorTest, ACommandSaysThatItWaits) {
  process_->Kill();
  process_ = nullptr;
  for (const std::string command : {"status", "export", "doctor"}) {
    std::vector<std::string> arguments = {"--timeout", "2.5", command};
    if (command == "export") arguments.insert(arguments.end(), {"--out", dir_.File("model.safetensors")});
    EXPECT_THAT(Run(arguments).err, AllOf(HasSubstr("no coordinator answers on 127.0.0.1:"),
                                          HasSubstr(" yet; retrying for 2.5 s\n")));
  }
  EXPECT_THAT(Run({"--timeout", "2.5", "--json", "status"}).err, testing::Not(HasSubstr("retrying for")));
}

TEST_F(CoordinatorTest, AnAdminPortAloneLeadsToNoOtherRunsData) {
  const Outcome events = Atollctl().Run({"--admin", "127.0.0.1:1", "events"});
  EXPECT_EQ(events.exit_code, 2) << events.err;
  EXPECT_THAT(events.err, AllOf(HasSubstr("data port"), HasSubstr("also give --coordinator HOST:PORT")));
  // An export does without the data port.
  const Outcome away = Atollctl().Run(
      {"--admin", "127.0.0.1:1", "--timeout", "0.3", "export", "--out", dir_.File("model.safetensors")});
  EXPECT_EQ(away.exit_code, 3) << away.err;
  EXPECT_THAT(away.err, HasSubstr("no coordinator answers on 127.0.0.1:1"));
  for (const std::vector<std::string>& stored :
       {std::vector<std::string>{"--version", "1"}, {"--checkpoint", "c"}, {"--with-momentum"}}) {
    std::vector<std::string> arguments = {"--coordinator", "127.0.0.1:1", "export", "--out",
                                          dir_.File("model.safetensors")};
    arguments.insert(arguments.end(), stored.begin(), stored.end());
    const Outcome mixed = Atollctl().Run(arguments);
    EXPECT_EQ(mixed.exit_code, 2) << mixed.err;
    EXPECT_THAT(mixed.err, AllOf(HasSubstr("admin port"), HasSubstr("also give --admin HOST:PORT")));
  }
}

TEST_F(CoordinatorTest, TheEnvironmentNeverLeadsToAnotherRunThanTheCommandLine) {
  const std::string admin = first_[1], data = first_[3];
  struct Case {
    std::string given, address, variable;
    std::vector<std::string> command;
    std::string words;
  };
  const std::string of_admin = "the address of the admin port, " + admin + ", comes from --admin";
  const std::string of_data = "the address of the data port, " + data + ", comes from --coordinator";
  const Case cases[] = {
      {"--admin", admin, "ATOLL_COORDINATOR", {"events"}, of_admin},
      {"--admin", admin, "ATOLL_COORDINATOR", {"doctor"}, of_admin},
      {"--coordinator", data, "ATOLL_ADMIN", {"doctor", "--dir", dir_.File("data")}, of_data},
      {"--coordinator", data, "ATOLL_ADMIN", {"status"}, of_data},
      {"--coordinator", data, "ATOLL_ADMIN", {"workers", "drain", "w0"}, of_data},
  };
  for (const Case& test : cases) {
    const Outcome mixed =
        Atollctl({test.given, test.address}, {test.variable + "=127.0.0.1:1"}).Run(test.command);
    EXPECT_EQ(mixed.exit_code, 2) << test.given << " " << test.command[0] << ": " << mixed.err;
    EXPECT_THAT(mixed.err, AllOf(HasSubstr("127.0.0.1:1 comes from " + test.variable), HasSubstr(test.words),
                                 HasSubstr("HOST:PORT")));
  }
  const std::vector<std::string> elsewhere = {"ATOLL_ADMIN=127.0.0.1:1", "ATOLL_COORDINATOR=127.0.0.1:1"};
  for (const std::string command : {"events", "status", "doctor"}) {
    const Outcome outcome = Atollctl(first_, elsewhere).Run({command});
    EXPECT_EQ(outcome.exit_code, 0) << command << ": " << outcome.err << outcome.out;
  }
  EXPECT_EQ(Atollctl({"--admin=" + admin}, elsewhere).Run({"status"}).exit_code, 0);
  EXPECT_THAT(Atollctl({"--admin=" + admin}, elsewhere).Run({"export", "--out", dir_.File("m")}).err,
              HasSubstr("the run has no parameters yet"));
  EXPECT_EQ(Atollctl({}, {"ATOLL_ADMIN=" + admin, "ATOLL_COORDINATOR=" + data}).Run({"events"}).exit_code, 0);
}

TEST_F(CoordinatorTest, StatusNamesTheEpochAndTheAddress) {
  const auto status = nlohmann::json::parse(Run({"status", "--json"}).out);
  const std::string epoch = status["epoch"].get<std::string>();
  const std::string identity = absl::StrFormat(" run %s, epoch %s, coordinator %s\n",
                                               status["run_id"].get<std::string>(), epoch, first_[1]);
  EXPECT_EQ(epoch.size(), 16u);
  EXPECT_NE(epoch, "0000000000000000");
  EXPECT_THAT(Run({"status"}).out, HasSubstr(identity));
  EXPECT_THAT(Run({"status", "--summary"}).out, HasSubstr(identity));
}

TEST_F(CoordinatorTest, SetsAndListsTheConfiguration) {
  EXPECT_EQ(Run({"config", "set", "--dry-run", "round.deadline_s=120"}).exit_code, 0);
  EXPECT_THAT(Run({"config", "set", "--expect", "1", "round.deadline_s=120"}).out,
              HasSubstr("round.deadline_s: 600 -> 120"));
  EXPECT_EQ(Run({"config", "set", "--expect", "1", "round.deadline_s=100"}).exit_code, 5);
  EXPECT_EQ(Run({"config", "set", "round.quorum=7"}).exit_code, 2);
  EXPECT_EQ(Run({"config", "set", "model.gpt.layers=4"}).exit_code, 5);
  EXPECT_THAT(Run({"config", "history", "--diff"}).out,
              AllOf(HasSubstr("start"), HasSubstr("tester"), HasSubstr("600 -> 120")));
  EXPECT_THAT(Run({"config", "show"}).out, HasSubstr("name: \"tiny\""));
}

TEST_F(CoordinatorTest, SaysWhatCannotBeDoneYet) {
  EXPECT_EQ(Run({"checkpoint", "create"}).exit_code, 5) << "not seeded";
  EXPECT_EQ(Run({"checkpoint", "list"}).exit_code, 0);
  EXPECT_EQ(Run({"checkpoint", "restore", "c1", "--yes"}).exit_code, 5);
  EXPECT_EQ(Run({"workers", "drain", "w9"}).exit_code, 5);
  EXPECT_EQ(Run({"workers", "describe", "w9"}).exit_code, 5);
  const Outcome scaled = Run({"workers", "add", "2"});
  EXPECT_EQ(scaled.exit_code, 5);
  EXPECT_THAT(scaled.err, HasSubstr("--launcher"));
  EXPECT_EQ(nlohmann::json::parse(Run({"launcher", "--json"}).out)["kind"], "none");
  EXPECT_EQ(nlohmann::json::parse(Run({"metrics", "--json"}).out)["total_tokens"], "384");
  EXPECT_EQ(Run({"metrics", "export"}).out, "unix_time,name,worker,version,committed_tokens,value\n");
}

TEST_F(CoordinatorTest, ValuesThatAreInForceAreNothingToChange) {
  ASSERT_EQ(Run({"config", "set", "round.deadline_s=120"}).exit_code, 0);
  for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"--dry-run"}}) {
    std::vector<std::string> arguments = {"config", "set", "round.deadline_s=120"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome same = Run(arguments);
    EXPECT_EQ(same.exit_code, 0) << same.err;
    EXPECT_EQ(same.out, "nothing to change: configuration 2 has these values\n");
  }
  EXPECT_EQ(nlohmann::json::parse(Run({"config", "history", "--json"}).out)["configs"].size(), 2u);
}

TEST_F(CoordinatorTest, DoctorFindsBothPortsAndTheClock) {
  const Outcome outcome = Run({"doctor"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out;
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr("ok    data port"), HasSubstr("ok    admin port"), HasSubstr("ok    clock")));
}

TEST_F(CoordinatorTest, DoctorSaysWhoseRunADirectoryHolds) {
  const std::string other = dir_.File("other.yaml"), data = dir_.File("data");
  ASSERT_TRUE(WriteFileAtomically(other, absl::StrReplaceAll(kConfig, {{"tiny", "large"}})).ok());
  const auto doctor = [&](const std::string& config, const std::string& folder) {
    return Run({"doctor", config, "--dir", folder});
  };
  // While it is served.
  EXPECT_THAT(doctor(dir_.File("run.yaml"), data).out,
              HasSubstr("ok    data directory     " + data + " holds run 'tiny'"));
  const Outcome rejected = doctor(other, data);
  EXPECT_EQ(rejected.exit_code, 1);
  EXPECT_THAT(rejected.out, AllOf(HasSubstr("fail  data directory"),
                                  HasSubstr("holds run 'tiny', but the configuration is for run 'large'")));
  EXPECT_THAT(doctor(other, data + "/meta/new").out, HasSubstr("inside the data directory of another run"));
  EXPECT_THAT(doctor(other, dir_.File("absent")).out, HasSubstr("holds no run; a new run can begin there"));
  EXPECT_THAT(doctor(other, dir_.path()).out, HasSubstr("is not a data directory and not empty"));
}

TEST_F(CoordinatorTest, DoctorBeforeTheStartNamesTheCommandThatStarts) {
  Stop();
  const std::vector<std::string> check = {"doctor", dir_.File("run.yaml"), "--dir", dir_.File("data")};
  const Outcome before = Run(check);
  EXPECT_EQ(before.exit_code, 0) << before.out;
  EXPECT_THAT(before.out,
              AllOf(HasSubstr("is free: no coordinator there yet"), HasSubstr("not running yet")));
  EXPECT_EQ(before.err, "") << "it waits for nobody";
  const size_t at = before.out.find("atoll-coordinator");
  ASSERT_NE(at, std::string::npos) << before.out;
  const std::string command = before.out.substr(at, before.out.find('\n', at) - at);
  const std::vector<std::string> before_ports = first_;
  Start(absl::StrSplit(command, ' '));
  EXPECT_EQ(first_, before_ports) << command;
  const Outcome after = Run(check);
  EXPECT_EQ(after.exit_code, 0) << after.out;
  EXPECT_THAT(after.out, AllOf(HasSubstr("ok    data port"), HasSubstr("ok    admin port"),
                               HasSubstr("ok    clock"), testing::Not(HasSubstr("not running yet"))));
  // Without --dir this may be another machine: a given address must answer.
  Stop();
  EXPECT_EQ(Run({"--timeout", "0.3", "doctor"}).exit_code, 1);
}

TEST_F(CoordinatorTest, AWorkersDoctorMakesNoCallThatIsDenied) {
  Stop();
  Start({"atoll-coordinator", "--config", dir_.File("run.yaml"), "--data-dir", dir_.File("data"), "--listen",
         "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--require-tokens"});
  const std::string admin = first_[1], data = first_[3];
  const std::string operators = dir_.File("data/access/admin.token"), token = dir_.File("w1.token");
  ASSERT_EQ(
      Run({"--token-file", operators, "tokens", "create", "--role", "worker", "--name", "w1", "--out", token})
          .exit_code,
      0);
  ASSERT_EQ(::setenv("ATOLL_ADMIN", admin.c_str(), 1), 0);
  const Outcome worker = Atollctl({"--coordinator", data}).Run({"--token-file", token, "doctor"});
  ::unsetenv("ATOLL_ADMIN");
  EXPECT_EQ(worker.exit_code, 0) << worker.out;
  EXPECT_THAT(worker.out,
              AllOf(HasSubstr("ok    data port"), HasSubstr(admin + " is not checked: workers do not")));
  EXPECT_THAT(ReadFile(dir_.File("log")).value(), testing::Not(HasSubstr("call denied")));
  EXPECT_EQ(Run({"--token-file", operators, "doctor"}).exit_code, 0) << "an operator's checks both ports";
  EXPECT_THAT(ReadFile(dir_.File("log")).value(), testing::Not(HasSubstr("call denied")));
  // Without a token no worker gets in.
  const Outcome nobody = Atollctl({"--coordinator", data}).Run({"doctor"});
  EXPECT_EQ(nobody.exit_code, 1);
  EXPECT_THAT(nobody.out, AllOf(HasSubstr("fail  data port"), HasSubstr("denies this caller")));
}

TEST_F(CoordinatorTest, ExportsIntoAPipeBehindALink) {
  const std::string pipe = dir_.File("pipe"), link = dir_.File("link");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::filesystem::create_symlink("pipe", link);
  const FileDescriptor reader(::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  const Outcome outcome = Run({"metrics", "export", "--out", link});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "") << "it could be the pipe";
  char buffer[4096];
  const ssize_t n = ::read(reader.get(), buffer, sizeof buffer);
  ASSERT_GT(n, 0);
  EXPECT_EQ(std::string(buffer, static_cast<size_t>(n)),
            "unix_time,name,worker,version,committed_tokens,value\n");
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
}

}  // namespace
}  // namespace atl
