#include "common/durable_file.h"

#include <sys/resource.h>

#include <csignal>
#include <string>
#include <string_view>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/test_dir.h"

namespace atl {
namespace {

std::span<const std::byte> Bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

TEST(DurableFileTest, WritesAtOffsetsInAnyOrder) {
  TestDir dir;
  auto file = DurableFile::Open(dir.File("a"), OpenMode::kCreateNew);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE(file->WriteAt(5, Bytes("world")).ok());
  ASSERT_TRUE(file->WriteAt(0, Bytes("hello")).ok());
  ASSERT_TRUE(file->Sync().ok());
  EXPECT_EQ(*file->Size(), 10u);
  std::string middle(4, '\0');
  ASSERT_TRUE(file->ReadAt(3, std::as_writable_bytes(std::span(middle.data(), middle.size()))).ok());
  EXPECT_EQ(middle, "lowo");
  ASSERT_TRUE(file->Truncate(5).ok());
  ASSERT_TRUE(file->Close().ok());
  ASSERT_TRUE(file->Close().ok());
  EXPECT_FALSE(file->is_open());
  EXPECT_EQ(*ReadFile(dir.File("a")), "hello");
}

TEST(DurableFileTest, ReadingPastTheEnd) {
  TestDir dir;
  ASSERT_TRUE(WriteFileAtomically(dir.File("a"), "12345").ok());
  const auto file = DurableFile::Open(dir.File("a"), OpenMode::kReadOnly);
  std::string out(4, '\0');
  const absl::Status status = file->ReadAt(3, std::as_writable_bytes(std::span(out.data(), out.size())));
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(std::string(status.message()), "read " + dir.File("a") + ": it ends at byte 5, but 7 are needed");
}

TEST(DurableFileTest, OpenModes) {
  TestDir dir;
  const std::string path = dir.File("a");
  EXPECT_EQ(DurableFile::Open(path, OpenMode::kOpenExisting).status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(WriteFileAtomically(path, "12345").ok());
  EXPECT_EQ(DurableFile::Open(path, OpenMode::kCreateNew).status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(*DurableFile::Open(path, OpenMode::kCreateOrOpen)->Size(), 5u);
  EXPECT_EQ(*DurableFile::Open(path, OpenMode::kTruncate)->Size(), 0u);
}

// A real full disk: /dev/full answers every write with ENOSPC.
TEST(DurableFileTest, FullDisk) {
  auto file = DurableFile::Open("/dev/full", OpenMode::kOpenExisting);
  if (!file.ok()) GTEST_SKIP() << file.status();
  const absl::Status status = file->WriteAt(0, Bytes("x"));
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("/dev/full: No space left on device"));
}

// A limit on the file's size is met in the middle of a write: what lies before it is there.
TEST(DurableFileTest, PartialWriteReportsTheError) {
  TestDir dir;
  auto file = DurableFile::Open(dir.File("a"), OpenMode::kCreateNew);
  ASSERT_TRUE(file.ok());
  rlimit old_limit;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{4096, old_limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  const absl::Status status = file->WriteAt(0, Bytes(std::string(10'000, 'x')));
  ::setrlimit(RLIMIT_FSIZE, &old_limit);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_EQ(*file->Size(), 4096u);
}

TEST(DurableFileTest, ReserveDoesNotChangeTheSize) {
  TestDir dir;
  auto file = DurableFile::Open(dir.File("a"), OpenMode::kCreateNew);
  ASSERT_TRUE(file->Reserve(1 << 20).ok());
  EXPECT_TRUE(file->Reserve(0).ok());
  EXPECT_EQ(*file->Size(), 0u);
}

}  // namespace
}  // namespace atl
