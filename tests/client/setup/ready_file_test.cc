#include "client/setup/ready_file.h"

#include <filesystem>

#include "common/file.h"
#include "gtest/gtest.h"
#include "tests/common/test_dir.h"

namespace atl {
namespace {

/// What came through.
class Counting final : public WorkerObserver {
 public:
  void OnJoined(const JoinedRun&, bool) override { ++joins; }
  void OnHeartbeat(bool, Duration) override { ++heartbeats; }
  void OnRound(uint32_t steps, uint64_t, double, Duration) override { round_steps += steps; }
  int joins = 0;
  int heartbeats = 0;
  uint32_t round_steps = 0;
};

class ReadyFileTest : public ::testing::Test {
 protected:
  TestDir dir_;
  const std::string path_ = dir_.File("ready");
  Counting next_;
};

TEST_F(ReadyFileTest, ARemovedOneIsBackWithTheNextHeartbeatOrJoin) {
  ReadyFile ready(path_, &next_, Logger());
  ready.OnJoined(JoinedRun(), false);
  ASSERT_TRUE(RemoveFile(path_).ok());
  ready.OnHeartbeat(true, Duration(0));
  EXPECT_TRUE(FileExists(path_));
  ASSERT_TRUE(RemoveFile(path_).ok());
  ready.OnJoined(JoinedRun(), true);
  EXPECT_TRUE(FileExists(path_));
}

TEST_F(ReadyFileTest, IsThereWhileTheCoordinatorAnswers) {
  {
    ReadyFile ready(path_, &next_, Logger());
    ready.OnHeartbeat(true, Duration(0));
    EXPECT_FALSE(FileExists(path_)) << "not a member yet";
    ready.OnJoined(JoinedRun(), false);
    EXPECT_TRUE(FileExists(path_));
    for (int missed = 1; missed < ReadyFile::kPatience; ++missed) {
      ready.OnHeartbeat(false, Duration(0));
      EXPECT_TRUE(FileExists(path_)) << missed;
    }
    ready.OnHeartbeat(false, Duration(0));
    EXPECT_FALSE(FileExists(path_));
    ready.OnHeartbeat(true, Duration(0));
    EXPECT_TRUE(FileExists(path_));
  }
  EXPECT_FALSE(FileExists(path_)) << "the worker is gone";
}

TEST_F(ReadyFileTest, WhatAnEarlierLifeLeftSaysNothing) {
  ASSERT_TRUE(WriteFileAtomically(path_, "").ok());
  EXPECT_TRUE(ReadyFile::Check(path_).ok());
  const ReadyFile ready(path_, &next_, Logger());
  EXPECT_FALSE(FileExists(path_));
}

TEST_F(ReadyFileTest, AFileWithContentsIsNotTheWorkers) {
  EXPECT_TRUE(ReadyFile::Check("").ok());
  EXPECT_TRUE(ReadyFile::Check(path_).ok());
  ASSERT_TRUE(WriteFileAtomically(path_, "my thesis").ok());
  const absl::Status rejected = ReadyFile::Check(path_);
  EXPECT_EQ(rejected.code(), absl::StatusCode::kInvalidArgument) << rejected;
  EXPECT_EQ(ReadFile(path_).value(), "my thesis");
}

TEST_F(ReadyFileTest, ALinkIsRejectedAndStays) {
  ASSERT_TRUE(WriteFileAtomically(dir_.File("target"), "").ok());
  for (const char* target : {"target", "absent"}) {
    const std::string link = dir_.File(std::string("to-") + target);
    std::filesystem::create_symlink(target, link);
    const absl::Status rejected = ReadyFile::Check(link);
    EXPECT_EQ(rejected.code(), absl::StatusCode::kInvalidArgument) << rejected;
    EXPECT_NE(rejected.message().find("symbolic link"), std::string::npos) << rejected;
    EXPECT_TRUE(std::filesystem::is_symlink(link));
  }
}

TEST_F(ReadyFileTest, HandsOnWhatItHears) {
  for (const std::string& path : {path_, std::string(), dir_.File("no/such/folder")}) {
    ReadyFile ready(path, &next_, Logger());
    ready.OnJoined(JoinedRun(), false);
    ready.OnHeartbeat(true, Duration(0));
    ready.OnRound(7, 1, 0.5, Seconds(1));
  }
  EXPECT_EQ(next_.joins, 3);
  EXPECT_EQ(next_.heartbeats, 3);
  EXPECT_EQ(next_.round_steps, 21u);
}

}  // namespace
}  // namespace atl
