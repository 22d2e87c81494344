#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <thread>

#include "common/clock.h"
#include "common/file_descriptor.h"
#include "common/random.h"
#include "tests/storage/crash_check.h"
#include "tests/storage/temp_dir.h"

extern char** environ;

// kill -9 at random moments: nothing that was acknowledged is lost, and the head never goes back.

namespace atl {
namespace {

constexpr int kKills = 10;

/// storage_crash_writer on a folder, its output at the other end of a pipe.
class Writer {
 public:
  explicit Writer(const std::string& dir) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    output_ = FileDescriptor(ends[0]);
    FileDescriptor input(ends[1]);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, input.get(), STDOUT_FILENO);
    std::string program = ATOLL_CRASH_WRITER;
    std::string folder = dir;
    char* arguments[] = {program.data(), folder.data(), nullptr};
    EXPECT_EQ(::posix_spawn(&pid_, program.c_str(), &actions, nullptr, arguments, environ), 0);
    ::posix_spawn_file_actions_destroy(&actions);
  }

  /// Lets it write `lines` lines, waits a little longer, kills it, and returns all it said.
  std::string KillAfter(uint64_t lines, Duration more) {
    std::string said;
    while (static_cast<uint64_t>(std::count(said.begin(), said.end(), '\n')) < lines && ReadSome(said)) {
    }
    std::this_thread::sleep_for(more);  // the moment of death is meant to be anywhere
    ::kill(pid_, SIGKILL);
    while (ReadSome(said)) {
    }
    int status = 0;
    EXPECT_EQ(::waitpid(pid_, &status, 0), pid_);
    EXPECT_TRUE(WIFSIGNALED(status)) << "the writer ended by itself: " << WEXITSTATUS(status);
    return said;
  }

 private:
  bool ReadSome(std::string& said) {
    char buffer[4096];
    const ssize_t n = ::read(output_.get(), buffer, sizeof(buffer));
    if (n > 0) said.append(buffer, static_cast<size_t>(n));
    return n > 0;
  }

  FileDescriptor output_;
  pid_t pid_ = -1;
};

TEST(CrashTest, NothingAcknowledgedIsLostByKills) {
  const TempDir temp;
  const std::string dir = temp.path() + "/run";
  SplitMixGenerator random(20251121);
  CrashState before;
  for (int kill = 0; kill < kKills; ++kill) {
    // The first ones early, so that creation and seeding are hit as well.
    const uint64_t lines = kill < 3 ? random.Below(3) : random.Below(20);
    const Duration more = std::chrono::microseconds(random.Below(30000));
    Writer writer(dir);
    CrashState promised = ParseAcknowledgements(writer.KillAfter(lines, more));
    promised.created |= before.created;
    promised.head = std::max(promised.head, before.head);
    promised.stored = std::max(promised.stored, before.stored);
    promised.event = std::max(promised.event, before.event);
    promised.incarnation = std::max(promised.incarnation, before.incarnation);
    promised.accepted.insert(before.accepted.begin(), before.accepted.end());
    const auto found = ReadCrashState(dir);
    ASSERT_TRUE(found.ok()) << "after kill " << kill << ": " << found.status();
    const absl::Status kept = CheckPromises(promised, *found);
    EXPECT_TRUE(kept.ok()) << "after kill " << kill << ": " << kept;
    before = *found;
  }
  EXPECT_GT(before.head, 3) << "the run hardly moved: the test proves little";
}

TEST(CrashTest, ABrokenPromiseIsSeen) {
  const CrashState promised = ParseAcknowledgements(
      "ACK -1 created \nACK 0 seeded \nACK 0 accepted w0@0\nACK 1 committed 1\nACK 1 event 1\nACK 1 accepted "
      "w1@1\n");
  CrashState found;
  EXPECT_FALSE(CheckPromises(promised, found).ok());
  found = promised;
  EXPECT_TRUE(CheckPromises(promised, found).ok());
  found.head = 0;
  EXPECT_FALSE(CheckPromises(promised, found).ok());
  found = promised;
  found.accepted.erase("w1@1");
  EXPECT_FALSE(CheckPromises(promised, found).ok());
  found = promised;
  found.event = 0;
  EXPECT_FALSE(CheckPromises(promised, found).ok());
}

}  // namespace
}  // namespace atl
