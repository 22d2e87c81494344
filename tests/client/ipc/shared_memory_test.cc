#include "client/ipc/shared_memory.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gtest/gtest.h"

namespace atl::ipc {
namespace {

TEST(SharedMemoryTest, GrowsAndKeepsWhatItHas) {
  SharedMemory memory;
  ASSERT_TRUE(memory.Create("test"));
  ASSERT_TRUE(memory.Grow(4096));
  memory.floats()[0] = 1.5F;
  ASSERT_TRUE(memory.Grow(1 << 20));
  EXPECT_EQ(memory.floats()[0], 1.5F);
  EXPECT_EQ(memory.floats()[(1 << 18) - 1], 0.0F);
  EXPECT_EQ(memory.bytes().size(), size_t{1} << 20);
}

TEST(SharedMemoryTest, TheOtherSideMapsWhatIsThereAndNoMore) {
  SharedMemory memory;
  ASSERT_TRUE(memory.Create("test"));
  SharedMemory other(::fcntl(memory.descriptor(), F_DUPFD_CLOEXEC, 0));
  EXPECT_TRUE(other.Map(0));
  EXPECT_FALSE(other.Map(1));
  ASSERT_TRUE(memory.Grow(8192));
  ASSERT_TRUE(other.Map(8192));
  memory.floats()[7] = 3;
  EXPECT_EQ(other.floats()[7], 3.0F);
  EXPECT_FALSE(other.Map(8193));
}

TEST(SharedMemoryTest, TakesNoNumberOfAClosedStandardStream) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (int number = 0; number <= STDERR_FILENO; ++number) ::close(number);
    SharedMemory memory;
    const bool above = memory.Create("test") && memory.descriptor() > STDERR_FILENO;
    const bool closed = ::fcntl(STDIN_FILENO, F_GETFD) < 0 && ::fcntl(STDERR_FILENO, F_GETFD) < 0;
    const bool on_exec = ::fcntl(memory.descriptor(), F_GETFD) == FD_CLOEXEC;
    ::_exit(above && closed && on_exec && memory.Grow(1) ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(SharedMemoryTest, NobodyShrinksIt) {
  SharedMemory memory;
  ASSERT_TRUE(memory.Create("test"));
  ASSERT_TRUE(memory.Grow(8192));
  EXPECT_NE(::ftruncate(memory.descriptor(), 4096), 0);
  EXPECT_FALSE(memory.Grow(UINT64_MAX));
}

}  // namespace
}  // namespace atl::ipc
