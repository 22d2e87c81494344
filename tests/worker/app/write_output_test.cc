#include "worker/app/write_output.h"

#include <memory>
#include <string>

#include "common/exit_codes.h"
#include "gtest/gtest.h"

namespace atl {
namespace {

using FilePtr = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

TEST(WriteOutput, WritesZeroBytesToo) {
  const FilePtr file(std::tmpfile(), &std::fclose);
  ASSERT_NE(file, nullptr);
  const std::string text("a\0b\0\n", 5);
  ASSERT_TRUE(WriteOutput(text, file.get()).ok());
  std::rewind(file.get());
  std::string read(16, 'x');
  read.resize(std::fread(read.data(), 1, read.size(), file.get()));
  EXPECT_EQ(read, text);
}

TEST(WriteOutput, AFullDiskIsAnErrorOfStorage) {
  const FilePtr full(std::fopen("/dev/full", "w"), &std::fclose);
  ASSERT_NE(full, nullptr);
  EXPECT_EQ(DefaultExitCode(WriteOutput("short enough for the buffer\n", full.get())), ExitCode::kStorage);
  EXPECT_EQ(DefaultExitCode(WriteOutput(std::string(1 << 20, 'a'), full.get())), ExitCode::kStorage);
}

}  // namespace
}  // namespace atl
