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
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto lock = FileLock::Acquire(path);
    const char answer = lock.ok() ? 'y' : 'n';
    if (::write(ready[1], &answer, 1) != 1) ::_exit(1);
    while (true) ::pause();
  }
  char answer = 0;
  ASSERT_EQ(::read(ready[0], &answer, 1), 1);
  EXPECT_EQ(answer, 'y');
  const auto rejected = FileLock::Acquire(path);
  EXPECT_THAT(std::string(rejected.status().message()),
              ::testing::HasSubstr(absl::StrCat("process ", child)));
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(FileLock::Acquire(path).ok());
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST(FileLockTest, TheProgramOfAnEngineIsNamed) {
  TestDir dir;
  const std::string path = dir.File("LOCK");
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::prctl(PR_SET_NAME, "atoll-engine");
    const auto lock = FileLock::Acquire(path);
    const char answer = lock.ok() ? 'y' : 'n';
    if (::write(ready[1], &answer, 1) != 1) ::_exit(1);
    while (true) ::pause();
  }
  char answer = 0;
  ASSERT_EQ(::read(ready[0], &answer, 1), 1);
  ASSERT_EQ(answer, 'y');
  EXPECT_EQ(std::string(FileLock::Acquire(path).status().message()),
            absl::StrCat(path, " is locked by process ", child, " (atoll-engine), which belongs to process ",
                         ::getpid(), " (common_test): stop that process, or choose another directory"));
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST(FileLockTest, AFolderThatIsNotThere) {
  TestDir dir;
  EXPECT_EQ(FileLock::Acquire(dir.File("no/LOCK")).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace atl
