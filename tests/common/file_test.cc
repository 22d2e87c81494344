#include "common/file.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "common/file_descriptor.h"
#include "common/mapped_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/test_dir.h"

namespace atl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(FileTest, JoinPath) {
  EXPECT_EQ(JoinPath("a", "b"), "a/b");
  EXPECT_EQ(JoinPath("a/", "b"), "a/b");
  EXPECT_EQ(JoinPath("/", "b"), "/b");
  EXPECT_EQ(JoinPath("", "b"), "b");
}

TEST(FileTest, WritesAndReadsBack) {
  TestDir dir;
  const std::string path = dir.File("a");
  const std::string contents(200'000, 'x');
  ASSERT_TRUE(WriteFileAtomically(path, contents).ok());
  EXPECT_EQ(*ReadFile(path), contents);
  EXPECT_EQ(*FileSize(path), contents.size());
  ASSERT_TRUE(WriteFileAtomically(path, "").ok());
  EXPECT_EQ(*ReadFile(path), "");
  EXPECT_THAT(*ListDir(dir.path()), ElementsAre("a"));  // no temporary file stays
}

TEST(FileTest, AtomicWriteSetsTheMode) {
  TestDir dir;
  ASSERT_TRUE(WriteFileAtomically(dir.File("secret"), "x", 0600).ok());
  struct stat info;
  ASSERT_EQ(::stat(dir.File("secret").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0600u);
}

TEST(FileTest, FailedWriteKeepsTheOldFileAndLeavesNothingBehind) {
  TestDir dir;
  ASSERT_TRUE(CreateDirs(dir.File("folder/full")).ok());
  const absl::Status status = WriteFileAtomically(dir.File("folder"), "x");  // rename onto a folder
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(dir.File("folder")));
  EXPECT_THAT(*ListDir(dir.path()), ElementsAre("folder"));
}

TEST(FileTest, ReadErrorsNameTheFile) {
  TestDir dir;
  const auto missing = ReadFile(dir.File("missing"));
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(std::string(missing.status().message()),
            "open " + dir.File("missing") + ": No such file or directory");
  ASSERT_TRUE(WriteFileAtomically(dir.File("big"), "12345").ok());
  EXPECT_EQ(*ReadFile(dir.File("big"), 5), "12345");
  const absl::Status big = ReadFile(dir.File("big"), 4).status();
  EXPECT_EQ(big.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(big.message()), HasSubstr("larger than the limit of 4 bytes"));
}

TEST(FileTest, APipeWithoutAWriterIsNoFile) {
  TestDir dir;
  const std::string path = dir.File("pipe");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  for (const absl::Status& rejected : {ReadFile(path).status(), MappedFile::Open(path).status()}) {
    EXPECT_EQ(rejected.code(), absl::StatusCode::kFailedPrecondition) << rejected;
    EXPECT_THAT(std::string(rejected.message()), HasSubstr(path + ": is a pipe (FIFO), not a file"));
  }
}

TEST(FileTest, APipeIsReadToTheEndOfItsWriter) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  FileDescriptor from(ends[0]);
  FileDescriptor into(ends[1]);
  const std::string path = "/proc/self/fd/" + std::to_string(from.get());
  ASSERT_EQ(::write(into.get(), "first,", 6), 6);
  std::thread writer([&into] {
    const std::string rest(300'000, 'x');  // more than a pipe holds
    for (size_t at = 0; at < rest.size();) {
      const ssize_t n = ::write(into.get(), rest.data() + at, rest.size() - at);
      if (n <= 0) break;
      at += static_cast<size_t>(n);
    }
    into.Reset();
  });
  const auto contents = ReadFile(path);
  writer.join();
  ASSERT_TRUE(contents.ok()) << contents.status();
  EXPECT_EQ(*contents, "first," + std::string(300'000, 'x'));
}

TEST(FileTest, NobodyWaitsForAWriterThatDoesNotEnd) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const FileDescriptor from(ends[0]);
  const FileDescriptor into(ends[1]);
  ASSERT_EQ(::write(into.get(), "some", 4), 4);
  const absl::Status rejected = ReadFile("/proc/self/fd/" + std::to_string(from.get())).status();
  EXPECT_EQ(rejected.code(), absl::StatusCode::kFailedPrecondition) << rejected;
  EXPECT_THAT(std::string(rejected.message()), HasSubstr("its writer did not end within 3 s"));
}

TEST(FileTest, DevicesSocketsAndLoopsAreNoFiles) {
  TestDir dir;
  const absl::Status device = ReadFile("/dev/zero").status();
  EXPECT_EQ(device.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(std::string(device.message()), "open /dev/zero: is a device, not a file");
  ASSERT_EQ(::symlink("loop", dir.File("loop").c_str()), 0);
  EXPECT_EQ(ReadFile(dir.File("loop")).status().code(), absl::StatusCode::kFailedPrecondition);
  const FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM, 0));
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  ASSERT_LT(dir.File("socket").size(), sizeof(address.sun_path));
  std::ranges::copy(dir.File("socket"), address.sun_path);
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_THAT(std::string(ReadFile(dir.File("socket")).status().message()),
              HasSubstr("is a socket, not a file"));
}

TEST(FileTest, CreateDirsIsIdempotentAndRejectsAFileInTheWay) {
  TestDir dir;
  EXPECT_TRUE(CreateDirs(dir.File("a/b/c")).ok());
  EXPECT_TRUE(CreateDirs(dir.File("a/b/c/")).ok());
  EXPECT_TRUE(FileExists(dir.File("a/b/c")));
  ASSERT_TRUE(WriteFileAtomically(dir.File("a/file"), "x").ok());
  const absl::Status status = CreateDirs(dir.File("a/file/d"));
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("a file of that name exists"));
}

TEST(FileTest, ListsSortedAndRemoves) {
  TestDir dir;
  for (const char* name : {"b", "a", "c"}) ASSERT_TRUE(WriteFileAtomically(dir.File(name), "x").ok());
  EXPECT_THAT(*ListDir(dir.path()), ElementsAre("a", "b", "c"));
  EXPECT_TRUE(RemoveFile(dir.File("b")).ok());
  EXPECT_TRUE(RemoveFile(dir.File("b")).ok());
  EXPECT_THAT(*ListDir(dir.path()), ElementsAre("a", "c"));
  EXPECT_EQ(ListDir(dir.File("nowhere")).status().code(), absl::StatusCode::kNotFound);
}

TEST(FileTest, RemoveAllDoesNotFollowLinks) {
  TestDir dir;
  ASSERT_TRUE(CreateDirs(dir.File("victim")).ok());
  ASSERT_TRUE(WriteFileAtomically(dir.File("victim/precious"), "x").ok());
  ASSERT_TRUE(CreateDirs(dir.File("tree/deep")).ok());
  ASSERT_EQ(::symlink(dir.File("victim").c_str(), dir.File("tree/link").c_str()), 0);
  EXPECT_TRUE(RemoveAll(dir.File("tree")).ok());
  EXPECT_TRUE(RemoveAll(dir.File("tree")).ok());
  EXPECT_FALSE(FileExists(dir.File("tree")));
  EXPECT_TRUE(FileExists(dir.File("victim/precious")));
}

TEST(FileTest, FreeBytes) {
  EXPECT_GT(*FreeBytes("/tmp"), 0u);
  EXPECT_EQ(FreeBytes("/nowhere/at/all").status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace atl
