#include "common/token_source.h"

#include "common/file.h"
#include "gtest/gtest.h"
#include "tests/common/fake_clock.h"
#include "tests/common/test_dir.h"

namespace atl {
namespace {

TEST(TokenSource, AFileOfATokenIsItsFirstLine) {
  const TestDir dir;
  const std::string path = dir.File("token");
  ASSERT_TRUE(WriteFileAtomically(path, " abc\r\nand a remark\n").ok());
  EXPECT_EQ(*ReadTokenFile(path), "abc");
  ASSERT_TRUE(WriteFileAtomically(path, "\nabc\n").ok());
  EXPECT_TRUE(absl::IsInvalidArgument(ReadTokenFile(path).status()));
  ASSERT_TRUE(WriteFileAtomically(path, "a b\n").ok());
  EXPECT_TRUE(absl::IsInvalidArgument(ReadTokenFile(path).status()));
  EXPECT_TRUE(absl::IsNotFound(ReadTokenFile(dir.File("none")).status()));
}

TEST(TokenSource, ATokenInThePlaceOfAPathIsNotShown) {
  const TestDir dir;
  const std::string secret(64, 'a');
  for (const std::string& value : {"atoll_c80d_" + secret, dir.File("atoll_c80d_" + secret), secret}) {
    const absl::Status error = ReadTokenFile(value).status();
    EXPECT_TRUE(absl::IsNotFound(error)) << error;
    EXPECT_EQ(error.ToString().find(secret), std::string::npos) << error;
    EXPECT_NE(error.ToString().find("looks like a token"), std::string::npos) << error;
  }
  const std::string path = dir.File(secret);
  ASSERT_TRUE(WriteFileAtomically(path, "abc\n").ok());
  EXPECT_EQ(*ReadTokenFile(path), "abc");
}

TEST(TokenSource, FollowsItsFileAndKeepsTheLastThatCouldBeRead) {
  const TestDir dir;
  FakeClock clock;
  const std::string path = dir.File("token");
  EXPECT_FALSE(TokenSource::Open(path, &clock).ok());
  ASSERT_TRUE(WriteFileAtomically(path, "first\n").ok());
  const auto source = TokenSource::Open(path, &clock);
  ASSERT_TRUE(source.ok());
  ASSERT_TRUE(WriteFileAtomically(path, "second\n").ok());
  EXPECT_EQ((*source)->Current(), "first");  // read a moment ago
  clock.Advance(Seconds(1));
  EXPECT_EQ((*source)->Current(), "second");
  ASSERT_TRUE(RemoveFile(path).ok());
  clock.Advance(Seconds(1));
  EXPECT_EQ((*source)->Current(), "second");
}

}  // namespace
}  // namespace atl
