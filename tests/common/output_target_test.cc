#include "common/output_target.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/file.h"
#include "common/file_descriptor.h"
#include "common/partial_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/test_dir.h"

namespace atl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class OutputTargetTest : public ::testing::Test {
 protected:
  /// A pipe. The name is that of a shell's >(command), or of /dev/stdout in a pipeline: a link of /proc.
  struct Pipe {
    FileDescriptor from, into;
    std::string name;
  };
  static Pipe MakePipe() {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    return {FileDescriptor(ends[0]), FileDescriptor(ends[1]), "/proc/self/fd/" + std::to_string(ends[1])};
  }
  static std::string ReadToEnd(const FileDescriptor& from) {
    std::string all;
    char buffer[4096];
    for (ssize_t n = 0; (n = ::read(from.get(), buffer, sizeof buffer)) > 0;) {
      all.append(buffer, static_cast<size_t>(n));
    }
    return all;
  }
  void Link(const std::string& to, const std::string& name) const {
    std::filesystem::create_symlink(to, dir_.File(name));
  }
  std::string TargetOf(const std::string& name) const {
    const auto target = ResolveOutput(dir_.File(name));
    EXPECT_TRUE(target.ok()) << target.status();
    return target.ok() && !target->stream ? target->path : "";
  }

  TestDir dir_;
};

TEST_F(OutputTargetTest, ALinkGivesTheNameAtItsEnd) {
  ASSERT_TRUE(CreateDirs(dir_.File("folder")).ok());
  ASSERT_TRUE(WriteFileAtomically(dir_.File("folder/file"), "old").ok());
  Link("folder/file", "one");
  Link("one", "two");
  Link(dir_.File("folder/file"), "absolute");
  EXPECT_EQ(TargetOf("folder/file"), dir_.File("folder/file"));
  EXPECT_EQ(TargetOf("free"), dir_.File("free"));
  for (const char* name : {"one", "two", "absolute"}) {
    EXPECT_TRUE(std::filesystem::equivalent(TargetOf(name), dir_.File("folder/file"))) << name;
    EXPECT_FALSE(std::filesystem::is_symlink(TargetOf(name))) << name;
    ASSERT_TRUE(WriteFileAtomically(dir_.File(name), name).ok());
    EXPECT_TRUE(std::filesystem::is_symlink(dir_.File(name))) << name;
    EXPECT_EQ(ReadFile(dir_.File("folder/file")).value(), name);
  }
  EXPECT_THAT(ListDir(dir_.File("folder")).value(), ElementsAre("file"));
}

TEST_F(OutputTargetTest, ALinkWithoutATargetCreatesIt) {
  ASSERT_TRUE(CreateDirs(dir_.File("folder")).ok());
  Link("folder/new", "dangling");
  ASSERT_TRUE(WriteFileAtomically(dir_.File("dangling"), "x").ok());
  EXPECT_EQ(ReadFile(dir_.File("folder/new")).value(), "x");
  EXPECT_TRUE(std::filesystem::is_symlink(dir_.File("dangling")));
  Link("absent/new", "nowhere");
  for (const absl::Status& rejected :
       {WriteFileAtomically(dir_.File("nowhere"), "x"), PartialFile::Create(dir_.File("nowhere")).status()}) {
    EXPECT_TRUE(absl::IsNotFound(rejected)) << rejected;
    EXPECT_THAT(std::string(rejected.message()), HasSubstr("absent/new, whose folder does not exist"));
  }
  Link("loop", "loop");
  EXPECT_THAT(std::string(ResolveOutput(dir_.File("loop")).status().message()), HasSubstr("follow the link"));
  EXPECT_THAT(ListDir(dir_.path()).value(), ElementsAre("dangling", "folder", "loop", "nowhere"));
}

TEST_F(OutputTargetTest, APipeBehindALinkIsWrittenTo) {
  Pipe pipe = MakePipe();
  Link(pipe.name, "link");
  const std::string contents(300'000, 'x');  // more than a pipe holds
  std::string read;
  std::thread reader([&] { read = ReadToEnd(pipe.from); });
  EXPECT_TRUE(IsStream(dir_.File("link")));
  const absl::Status whole = WriteFileAtomically(dir_.File("link"), "whole,");
  absl::Status published;
  {
    const auto file = PartialFile::Create(dir_.File("link"));
    published = file.status();
    if (file.ok()) {
      EXPECT_TRUE(WriteFileAtomically(dir_.File("copy"), contents).ok());
      std::filesystem::copy_file(dir_.File("copy"), (*file)->partial(),
                                 std::filesystem::copy_options::overwrite_existing);
      published = (*file)->Publish();
    }
  }
  pipe.into.Reset();
  reader.join();
  EXPECT_TRUE(whole.ok()) << whole;
  EXPECT_TRUE(published.ok()) << published;
  EXPECT_EQ(read, "whole," + contents);
  EXPECT_THAT(ListDir(dir_.path()).value(), ElementsAre("copy", "link")) << "nothing is left beside the link";
  EXPECT_TRUE(std::filesystem::is_symlink(dir_.File("link")));
}

TEST_F(OutputTargetTest, AnUnfinishedFileWritesNothingToItsPipe) {
  Pipe pipe = MakePipe();
  {
    const auto file = PartialFile::Create(pipe.name);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_TRUE(std::filesystem::exists((*file)->partial()));
  }
  pipe.into.Reset();
  EXPECT_EQ(ReadToEnd(pipe.from), "");
}

TEST_F(OutputTargetTest, ADeviceBehindALinkIsWrittenToAndStays) {
  Link("/dev/null", "null");
  EXPECT_TRUE(WriteFileAtomically(dir_.File("null"), "x").ok());
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  EXPECT_TRUE(std::filesystem::is_symlink(dir_.File("null")));
}

TEST_F(OutputTargetTest, APipeThatNobodyReadsIsAnError) {
  ASSERT_EQ(::mkfifo(dir_.File("fifo").c_str(), 0600), 0);
  Link("fifo", "link");
  const absl::Status rejected = WriteFileAtomically(dir_.File("link"), "x");
  EXPECT_TRUE(absl::IsFailedPrecondition(rejected)) << rejected;
  EXPECT_THAT(std::string(rejected.message()), HasSubstr("nobody reads"));
  EXPECT_THAT(std::string(WriteFileAtomically(dir_.File("fifo"), "x").message()),
              HasSubstr("must not be replaced"));
}

TEST_F(OutputTargetTest, AFileBehindADescriptorIsWrittenToAndNotReplaced) {
  ASSERT_TRUE(WriteFileAtomically(dir_.File("log"), "first\n").ok());
  const auto inode = [this] {
    struct stat info {};
    EXPECT_EQ(::stat(dir_.File("log").c_str(), &info), 0);
    return info.st_ino;
  };
  const auto before = inode();
  const FileDescriptor appends(::open(dir_.File("log").c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  const std::string number = std::to_string(appends.get());
  Link("/dev/fd/" + number, "link");
  for (const std::string& name : {"/dev/fd/" + number, "/proc/self/fd/" + number,
                                  absl::StrCat("/proc/", ::getpid(), "/fd/", number), dir_.File("link")}) {
    ASSERT_TRUE(IsStream(name)) << name;
    const absl::Status written = WriteFileAtomically(name, "whole\n");
    EXPECT_TRUE(written.ok()) << written;
    const auto file = PartialFile::Create(name);
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE(WriteFileAtomically(dir_.File("part"), "part\n").ok());
    std::filesystem::copy_file(dir_.File("part"), (*file)->partial(),
                               std::filesystem::copy_options::overwrite_existing);
    EXPECT_TRUE((*file)->Publish().ok());
  }
  EXPECT_EQ(ReadFile(dir_.File("log")).value(),
            "first\nwhole\npart\nwhole\npart\nwhole\npart\nwhole\npart\n");
  EXPECT_EQ(inode(), before);
  EXPECT_NE(::fcntl(appends.get(), F_GETFL) & O_APPEND, 0) << "others share the flags";
  // Without O_APPEND it is the position that counts, as after `command >FILE`.
  const FileDescriptor at_begin(::open(dir_.File("log").c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
  const std::string begin = "/proc/self/fd/" + std::to_string(at_begin.get());
  EXPECT_TRUE(WriteFileAtomically(begin, "one ").ok());
  EXPECT_TRUE(WriteFileAtomically(begin, "two").ok());
  EXPECT_EQ(ReadFile(dir_.File("log")).value(), "one two");
}

TEST_F(OutputTargetTest, ADescriptorForReadingIsAnError) {
  ASSERT_TRUE(WriteFileAtomically(dir_.File("log"), "x").ok());
  const FileDescriptor reads(::open(dir_.File("log").c_str(), O_RDONLY | O_CLOEXEC));
  const absl::Status rejected = WriteFileAtomically("/proc/self/fd/" + std::to_string(reads.get()), "y");
  EXPECT_TRUE(absl::IsFailedPrecondition(rejected)) << rejected;
  EXPECT_THAT(std::string(rejected.message()), HasSubstr("open for reading only"));
  EXPECT_EQ(ReadFile(dir_.File("log")).value(), "x");
}

TEST_F(OutputTargetTest, AnOpenFileWithoutANameIsWrittenTo) {
  ASSERT_TRUE(WriteFileAtomically(dir_.File("gone"), "").ok());
  const FileDescriptor open(::open(dir_.File("gone").c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_TRUE(RemoveFile(dir_.File("gone")).ok());
  EXPECT_TRUE(WriteFileAtomically("/proc/self/fd/" + std::to_string(open.get()), "x").ok());
  char c = 0;
  EXPECT_EQ(::pread(open.get(), &c, 1, 0), 1);
  EXPECT_EQ(c, 'x');
  EXPECT_TRUE(std::filesystem::is_empty(dir_.path()));
}

TEST_F(OutputTargetTest, AFileThatNobodyMayWriteIsKept) {
  ASSERT_TRUE(WriteFileAtomically(dir_.File("kept"), "old", 0400).ok());
  Link("kept", "link");
  for (const char* name : {"kept", "link"}) {
    const absl::Status rejected = PartialFile::Create(dir_.File(name)).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(rejected)) << rejected;
    EXPECT_THAT(std::string(rejected.message()),
                HasSubstr("is read-only (mode 0400); give another file name"));
  }
  EXPECT_THAT(ListDir(dir_.path()).value(), ElementsAre("kept", "link"));
  ASSERT_EQ(::chmod(dir_.File("kept").c_str(), 0600), 0);
  EXPECT_TRUE(PartialFile::Create(dir_.File("kept")).ok());
}

}  // namespace
}  // namespace atl
