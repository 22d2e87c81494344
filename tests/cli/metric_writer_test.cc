#include "cli/metric_writer.h"

#include <sys/resource.h>

#include <cmath>
#include <cstdio>
#include <limits>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "cli/tensorboard.h"
#include "common/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/common/test_dir.h"
#include "tests/paths.h"

namespace atl {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

v1::MetricPoint Point(const std::string& name, const std::string& worker, uint64_t version, double value) {
  v1::MetricPoint point;
  point.set_name(name);
  point.set_worker(worker);
  point.set_version(version);
  point.set_committed_tokens(1000 * version);
  point.set_unix_nanos(1'700'000'000'250'000'000 + static_cast<int64_t>(version) * 1'000'000'000);
  point.set_value(value);
  return point;
}

TEST(CsvWriter, QuotesAndKeepsEveryDigit) {
  std::ostringstream out;
  const auto writer = CsvWriter(&out);
  ASSERT_TRUE(writer->Add(Point("a,\"b\"", "w0", 3, 1.0 / 3)).ok());
  ASSERT_TRUE(writer->Add(Point("x", "", 4, std::numeric_limits<double>::quiet_NaN())).ok());
  ASSERT_TRUE(writer->Finish().ok());
  EXPECT_EQ(out.str(),
            "unix_time,name,worker,version,committed_tokens,value\n"
            "1700000003.250000000,\"a,\"\"b\"\"\",w0,3,3000,0.33333333333333331\n"
            "1700000004.250000000,x,,4,4000,nan\n");
}

TEST(CsvWriter, AFullDiskIsAnError) {
  std::ostringstream out;
  const auto writer = CsvWriter(&out);
  out.setstate(std::ios::badbit);
  EXPECT_TRUE(absl::IsResourceExhausted(writer->Add(Point("x", "", 1, 1))));
}

TEST(JsonLinesWriter, OneObjectALine) {
  std::ostringstream out;
  const auto writer = JsonLinesWriter(&out);
  ASSERT_TRUE(writer->Add(Point("train/loss", "w\xff", 3, 2.5)).ok());
  ASSERT_TRUE(writer->Add(Point("x", "", 4, std::numeric_limits<double>::infinity())).ok());
  ASSERT_TRUE(writer->Finish().ok());
  const std::vector<std::string> lines = absl::StrSplit(out.str(), '\n');
  ASSERT_THAT(lines, SizeIs(3));
  EXPECT_EQ(json::parse(lines[0])["value"], 2.5);
  EXPECT_EQ(json::parse(lines[0])["committed_tokens"], 3000);
  EXPECT_TRUE(json::parse(lines[1])["value"].is_null());
}

/// What the independent reader makes of the one event file in a folder.
std::vector<json> ReadBack(const std::string& folder, int* exit_code) {
  const auto names = ListDir(folder);
  EXPECT_TRUE(names.ok() && names->size() == 1) << names.status();
  const std::string command = "python3 -B " ATOLL_SOURCE_DIR "/tests/cli/tensorboard_reader.py '" +
                              JoinPath(folder, names->front()) + "' 2>&1";
  std::FILE* pipe = ::popen(command.c_str(), "r");
  std::string text;
  char block[4096];
  for (size_t n = 0; (n = std::fread(block, 1, sizeof block, pipe)) > 0;) text.append(block, n);
  *exit_code = ::pclose(pipe);
  std::vector<json> events;
  for (const auto line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    events.push_back(json::parse(std::string(line), nullptr, /*allow_exceptions=*/false));
  }
  return events;
}

std::unique_ptr<MetricWriter> Events(const TestDir& dir, const std::string& run_id = "0123abcd") {
  auto writer = TensorBoardWriter(dir.path(), run_id);
  EXPECT_TRUE(writer.ok()) << writer.status();
  return *std::move(writer);
}

TEST(TensorBoardWriter, AnotherReaderFindsWhatWasWritten) {
  TestDir dir;
  const auto writer = Events(dir);
  ASSERT_TRUE(writer->Add(Point("train/loss", "", 1, 5.25)).ok());
  ASSERT_TRUE(writer->Add(Point("worker/norm", "w0", 1, 0.1)).ok());
  ASSERT_TRUE(writer->Add(Point("train/loss", "", 300, 4.5)).ok());
  ASSERT_TRUE(writer->Finish().ok());
  int exit_code = -1;
  const std::vector<json> run = ReadBack(dir.File("run"), &exit_code);
  EXPECT_EQ(exit_code, 0);
  ASSERT_THAT(run, SizeIs(3));
  EXPECT_EQ(run[0], json({{"step", 0}, {"wall_time", 1700000001.25}, {"file_version", "brain.Event:2"}}));
  EXPECT_EQ(run[1],
            json({{"step", 1}, {"wall_time", 1700000001.25}, {"tag", "train/loss"}, {"value", 5.25}}));
  EXPECT_EQ(run[2],
            json({{"step", 300}, {"wall_time", 1700000300.25}, {"tag", "train/loss"}, {"value", 4.5}}));
  const std::vector<json> worker = ReadBack(dir.File("worker-w0"), &exit_code);
  ASSERT_THAT(worker, SizeIs(2));
  EXPECT_FLOAT_EQ(worker[1]["value"].get<float>(), 0.1F);
}

TEST(TensorBoardWriter, ASecondExportReplacesTheFirst) {
  TestDir dir;
  for (const uint64_t version : {1, 2}) {
    const auto writer = Events(dir);
    ASSERT_TRUE(writer->Add(Point("x", "", version, 1)).ok());
    ASSERT_TRUE(writer->Finish().ok());
  }
  EXPECT_THAT(ListDir(dir.File("run")).value(), ElementsAre(HasSubstr("1700000002")));
}

TEST(TensorBoardWriter, AnExportLeavesTheFilesOfOtherRuns) {
  TestDir dir;
  for (const std::string run : {"0123abcd", "4567ef01"}) {
    const auto writer = Events(dir, run);
    ASSERT_TRUE(writer->Add(Point("x", "", 1, 1)).ok());
    ASSERT_TRUE(writer->Finish().ok());
  }
  EXPECT_THAT(ListDir(dir.File("run")).value(),
              ElementsAre(HasSubstr("1700000001.0123abcd"), HasSubstr("1700000001.4567ef01")));
  EXPECT_TRUE(absl::IsInvalidArgument(TensorBoardWriter(dir.path(), "../other").status()));
}

TEST(TensorBoardWriter, MoreWorkersThanTheLimitOfOpenFiles) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_GE(before.rlim_max, 300U);
  const rlimit low{.rlim_cur = 64, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  TestDir dir;
  const auto writer = Events(dir);
  absl::Status added;
  for (int i = 0; i < 100; ++i) added.Update(writer->Add(Point("x", "w" + std::to_string(i), 1, 1)));
  added.Update(writer->Finish());
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(added.ok()) << added;
}

TEST(TensorBoardWriter, AnExportThatDoesNotEndLeavesTheOneBeforeIt) {
  TestDir dir;
  const auto whole = Events(dir);
  ASSERT_TRUE(whole->Add(Point("x", "", 1, 1)).ok());
  ASSERT_TRUE(whole->Finish().ok());
  auto broken = Events(dir);
  ASSERT_TRUE(broken->Add(Point("x", "", 2, 1)).ok());
  // TensorBoard reads every file with this in its name.
  std::vector<std::string> read = ListDir(dir.File("run")).value();
  std::erase_if(read, [](const std::string& name) { return !absl::StrContains(name, "tfevents"); });
  EXPECT_THAT(read, ElementsAre(HasSubstr("1700000001")));
  broken.reset();
  EXPECT_THAT(ListDir(dir.File("run")).value(), ElementsAre(HasSubstr("1700000001")));
}

TEST(TensorBoardWriter, AWorkersNameIsNoPath) {
  TestDir dir;
  EXPECT_TRUE(absl::IsInvalidArgument(Events(dir)->Add(Point("x", "../w", 1, 1))));
}

TEST(TfRecord, TheReaderFindsAFlippedBit) {
  TestDir dir;
  std::string bytes = TensorBoardHeader(1) + TensorBoardScalar("x", 1, 2, 3);
  bytes[bytes.size() - 6] ^= 1;
  ASSERT_TRUE(WriteFileAtomically(dir.File("events"), bytes).ok());
  int exit_code = 0;
  ReadBack(dir.path(), &exit_code);
  EXPECT_NE(exit_code, 0);
}

}  // namespace
}  // namespace atl
