#include "common/left_over.h"

#include <sys/stat.h>

#include "common/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/test_dir.h"

namespace atl {
namespace {

using ::testing::HasSubstr;

TEST(LeftOverTest, OnlyWhatAnEarlierLifeLeftIsReplaced) {
  const TestDir dir;
  const std::string path = dir.File("f");
  EXPECT_TRUE(CheckLeftOver("--port-file", path, "{mark").ok()) << "it is not there";
  EXPECT_TRUE(CheckLeftOver("--port-file", dir.File("no/f"), "{mark").ok()) << "told when it is written";
  for (const char* ours : {"", "{mark", "{mark: 1}"}) {
    ASSERT_TRUE(WriteFileAtomically(path, ours).ok());
    EXPECT_TRUE(CheckLeftOver("--port-file", path, "{mark").ok()) << ours;
  }
  for (const char* theirs : {"x", "{mar", "my thesis"}) {
    ASSERT_TRUE(WriteFileAtomically(path, theirs).ok());
    const absl::Status rejected = CheckLeftOver("--port-file", path, "{mark");
    EXPECT_EQ(rejected.code(), absl::StatusCode::kInvalidArgument) << theirs;
    EXPECT_THAT(rejected.ToString(), HasSubstr("--port-file " + path));
    EXPECT_EQ(CheckLeftOver("--ready-file", path, "").code(), absl::StatusCode::kInvalidArgument) << theirs;
  }
  const std::string pipe = dir.File("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(CheckLeftOver("--ready-file", pipe, "").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CheckLeftOver("--ready-file", dir.File(""), "").code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace atl
