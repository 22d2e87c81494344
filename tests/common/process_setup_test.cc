#include "common/process_setup.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <functional>
#include <string>

#include "gtest/gtest.h"
#include "tests/common/test_dir.h"

namespace atl {
namespace {

/// What a child that does this exits with; 128 + signal when one ended it.
int InChild(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(ProcessSetupTest, NoFileGetsTheNumberOfAClosedStandardDescriptor) {
  const TestDir dir;
  const std::string path = dir.File("LOCK");
  const int number = InChild([&] {
    for (const int descriptor : {0, 1, 2}) ::close(descriptor);
    SetUpProcess();
    return ::open(path.c_str(), O_CREAT | O_RDWR, 0600);
  });
  EXPECT_GT(number, 2);  // whoever runs the test may have more open
  EXPECT_EQ(InChild([] {
              ::close(2);
              SetUpProcess();
              return ::write(2, "x", 1) == 1 ? 0 : 1;
            }),
            0)
      << "a log line goes nowhere";
  EXPECT_EQ(InChild([] {
              ::close(1);
              SetUpProcess();
              return ::write(1, "x", 1) < 0 && errno == EBADF ? 0 : 1;
            }),
            0)
      << "a lost answer is an error";
}

TEST(ProcessSetupTest, OpenDescriptorsStayWhatTheyAre) {
  const TestDir dir;
  const std::string path = dir.File("out");
  EXPECT_EQ(InChild([&] {
              ::close(1);
              if (::open(path.c_str(), O_CREAT | O_RDWR, 0600) != 1) return 1;
              SetUpProcess();
              return ::write(1, "x", 1) == 1 ? 0 : 1;
            }),
            0);
}

TEST(ProcessSetupTest, TheLimitOfFileSizesIsAnErrorOfTheWrite) {
  const TestDir dir;
  const std::string path = dir.File("large");
  EXPECT_EQ(InChild([&] {
              SetUpProcess();
              const struct rlimit limit = {.rlim_cur = 10, .rlim_max = 10};
              ::setrlimit(RLIMIT_FSIZE, &limit);
              const int file = ::open(path.c_str(), O_CREAT | O_RDWR, 0600);
              if (::write(file, "0123456789", 10) != 10) return 1;
              return ::write(file, "x", 1) < 0 && errno == EFBIG ? 0 : 2;
            }),
            0);
}

TEST(ProcessSetupTest, TheEndOfAChildIsSeenBelowAParentThatIgnoresIts) {
  EXPECT_EQ(InChild([] {
              std::signal(SIGCHLD, SIG_IGN);
              SetUpProcess();
              return InChild([] { return 7; });
            }),
            7);
}

}  // namespace
}  // namespace atl
