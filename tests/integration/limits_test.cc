// What the limits of the system do to the coordinator: an exit code of the table and a message that names the
// limit, never a signal.

#include <csignal>

#include "gmock/gmock.h"
#include "tests/integration/coordinator_program.h"

namespace atl {
namespace {

using ::testing::HasSubstr;

class LimitsTest : public CoordinatorProgram {
 protected:
  /// The command line, started by a shell after `setup`, followed by `rest`.
  std::vector<std::string> InShell(const std::string& setup, const std::string& rest = "") const {
    std::vector<std::string> all = {"/bin/sh", "-c", setup + " exec \"$@\" " + rest, "sh"};
    const std::vector<std::string> arguments = Arguments({"--config", dir_.File("run.yaml")});
    all.insert(all.end(), arguments.begin(), arguments.end());
    return all;
  }
};

TEST_F(LimitsTest, ALimitOfFileSizesIsNamed) {
  // What it prints goes through a pipe, which has no limit.
  std::vector<std::string> command = InShell("");
  command[2] = "(ulimit -f 0; \"$@\" 2>&1; echo \"exit code $?\") | cat";
  const Finished run = RunToEnd(command, Seconds(60));
  EXPECT_THAT(run.output, HasSubstr("File too large (raise the limit of file sizes, ulimit -f)"));
  EXPECT_THAT(run.output, HasSubstr("exit code 4\n"));
}

TEST_F(LimitsTest, ALimitOfThreadsIsNamed) {
  // The stacks of its threads are the most of its address space. A user with too few processes left (ulimit
  // -u, pids.max) looks the same to it.
  const Finished run = RunToEnd(InShell("ulimit -v 400000;"), Seconds(60));
  EXPECT_EQ(run.exit_code, 4) << run.output;
  EXPECT_THAT(run.output, HasSubstr("a thread cannot be started"));
  EXPECT_THAT(run.output, HasSubstr("ulimit -v"));
}

TEST_F(LimitsTest, WithoutStandardOutputNothingIsWrittenIntoItsFiles) {
  const auto process = Process::Start(InShell("", "<&- >&- 2>&-"), dir_.File("log"));
  ASSERT_TRUE(process.ok()) << process.status();
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!FileExists(dir_.File("ports")) && (*process)->running()) {
    ASSERT_LT(std::chrono::steady_clock::now(), until);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(ReadFile(dir_.File("data/LOCK")).value(), std::to_string((*process)->pid()) + "\n");
  (*process)->Signal(SIGTERM);
  EXPECT_EQ((*process)->Wait(Seconds(60)), 0);
}

TEST_F(LimitsTest, AFolderOfOthersIsNoDataDirectory) {
  ASSERT_TRUE(CreateDirs(dir_.File("home/photos")).ok());
  const std::vector<std::string> config = {"--config", dir_.File("run.yaml"), "--data-dir"};
  const auto with = [&](const std::string& folder) {
    std::vector<std::string> all = config;
    all.push_back(folder);
    return Run(all);
  };
  const Finished home = with(dir_.File("home"));
  EXPECT_EQ(home.exit_code, 2) << home.output;
  EXPECT_THAT(home.output, HasSubstr("'photos'"));
  EXPECT_EQ(ListDir(dir_.File("home"))->size(), 1u) << "nothing is left there";
  const Finished root = with("/");
  EXPECT_EQ(root.exit_code, 2) << root.output;
  EXPECT_THAT(root.output, HasSubstr("not a data directory"));
  const Finished empty = with("");
  EXPECT_EQ(empty.exit_code, 2) << empty.output;
  EXPECT_THAT(empty.output, HasSubstr("--data-dir"));
}

TEST_F(LimitsTest, AFreshVolumeIsOneAndSoIsARun) {
  ASSERT_TRUE(CreateDirs(dir_.File("data/lost+found")).ok());
  ASSERT_TRUE(CreateDirs(dir_.File("data/..data")).ok());
  for (int life = 0; life < 2; ++life) {
    const auto process = Serve({"--config", dir_.File("run.yaml")});
    ASSERT_NE(process, nullptr);
    process->Kill();
  }
}

TEST_F(LimitsTest, APortFileReplacesOnlyPortFiles) {
  ASSERT_TRUE(WriteFileAtomically(dir_.File("thesis"), "chapter 1\n").ok());
  const Finished rejected = Run({"--config", dir_.File("run.yaml"), "--port-file", dir_.File("thesis")});
  EXPECT_EQ(rejected.exit_code, 2) << rejected.output;
  EXPECT_THAT(rejected.output, HasSubstr("another program wrote it"));
  EXPECT_EQ(ReadFile(dir_.File("thesis")).value(), "chapter 1\n");
  EXPECT_FALSE(FileExists(dir_.File("data"))) << "refused before anything is touched";
  // What a killed life left, here one of 0.1.0, is replaced.
  ASSERT_TRUE(
      WriteFileAtomically(dir_.File("old"), R"({"data": "127.0.0.1:1", "admin": "127.0.0.1:2"})").ok());
  const auto process = Process::Start(
      Arguments({"--config", dir_.File("run.yaml"), "--port-file", dir_.File("old")}), dir_.File("log"));
  ASSERT_TRUE(process.ok()) << process.status();
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (ReadFile(dir_.File("old")).value_or("").find("\"pid\": ") == std::string::npos) {
    ASSERT_TRUE((*process)->running() && std::chrono::steady_clock::now() < until) << Log();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

}  // namespace
}  // namespace atl
