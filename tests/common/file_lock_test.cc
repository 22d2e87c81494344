#include "common/file_lock.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/test_dir.h"

namespace atl {
namespace {

/// Another process that holds the lock until it is killed. `name`: of the process, if not this one's.
class Owner {
 public:
  explicit Owner(const std::string& path, const char* name = nullptr) {
    int ready[2];
    if (::pipe(ready) != 0) return;
    pid_ = ::fork();
    if (pid_ == 0) {
      if (name != nullptr) ::prctl(PR_SET_NAME, name);
      const auto lock = FileLock::Acquire(path);
      const char answer = lock.ok() ? 'y' : 'n';
      if (::write(ready[1], &answer, 1) != 1) ::_exit(1);
      while (true) ::pause();
    }
    char answer = 0;
    locked_ = ::read(ready[0], &answer, 1) == 1 && answer == 'y';
    ::close(ready[0]);
    ::close(ready[1]);
  }
  ~Owner() { Kill(); }
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;

  bool locked() const { return locked_; }
  pid_t pid() const { return pid_; }
  void Kill() {
    if (pid_ <= 0) return;
    EXPECT_EQ(::kill(pid_, SIGKILL), 0);
    EXPECT_EQ(::waitpid(pid_, nullptr, 0), pid_);
    pid_ = -1;
  }

 private:
  pid_t pid_ = -1;
  bool locked_ = false;
};

TEST(FileLockTest, ASecondOwnerIsToldWhoHoldsIt) {
  TestDir dir;
  const std::string path = dir.File("LOCK");
  std::optional<FileLock> lock;
  {
    auto acquired = FileLock::Acquire(path);
    ASSERT_TRUE(acquired.ok()) << acquired.status();
    lock.emplace(*std::move(acquired));
  }
  const auto second = FileLock::Acquire(path);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(std::string(second.status().message()),
            absl::StrCat(path, " is locked by process ", ::getpid(),
                         " (common_test): stop that process, or choose another directory"));
  lock.reset();
  EXPECT_TRUE(FileLock::Acquire(path).ok());
}

TEST(FileLockTest, TheLockDiesWithItsProcess) {
  TestDir dir;
  const std::string path = dir.File("LOCK");
  Owner owner(path);
  ASSERT_TRUE(owner.locked());
  const auto rejected = FileLock::Acquire(path);
  EXPECT_THAT(std::string(rejected.status().message()),
              ::testing::HasSubstr(absl::StrCat("process ", owner.pid())));
  owner.Kill();
  EXPECT_TRUE(FileLock::Acquire(path).ok());
}

TEST(FileLockTest, TheProgramOfAnEngineIsNamed) {
  TestDir dir;
  const std::string path = dir.File("LOCK");
  const Owner owner(path, "atoll-engine");
  ASSERT_TRUE(owner.locked());
  EXPECT_EQ(
      std::string(FileLock::Acquire(path).status().message()),
      absl::StrCat(path, " is locked by process ", owner.pid(), " (atoll-engine), which belongs to process ",
                   ::getpid(), " (common_test): stop that process, or choose another directory"));
}

TEST(FileLockTest, AFolderThatIsNotThere) {
  TestDir dir;
  EXPECT_EQ(FileLock::Acquire(dir.File("no/LOCK")).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace atl
