#include "common/progress_bar.h"

#include <sstream>

#include "gtest/gtest.h"
#include "tests/common/fake_clock.h"

namespace atl {
namespace {

ProgressOptions Options(ProgressStyle style, uint64_t total = 4096) {
  ProgressOptions options;
  options.label = "tokenize";
  options.total = total;
  options.unit = ProgressUnit::kBytes;
  options.style = style;
  return options;
}

TEST(ProgressBarTest, PlainLinesComeAtIntervals) {
  FakeClock clock;
  std::ostringstream out;
  ProgressBar bar(Options(ProgressStyle::kPlain), &clock, &out);
  bar.Update(1);
  EXPECT_EQ(out.str(), "");
  clock.Advance(Seconds(5));
  bar.Update(1024);
  bar.Update(1025);
  EXPECT_EQ(out.str(), "tokenize   25%  1.0 KiB of 4.0 KiB  204 B/s  15.0 s left\n");
  clock.Advance(Seconds(3));
  bar.Update(4096);
  out.str("");
  bar.Finish();
  bar.Finish();
  bar.Update(1);
  EXPECT_EQ(out.str(), "tokenize  4.0 KiB in 8.0 s  512 B/s\n");
}

TEST(ProgressBarTest, ATerminalLineIsRedrawnAndWiped) {
  FakeClock clock;
  std::ostringstream out;
  ProgressBar bar(Options(ProgressStyle::kTerminal), &clock, &out);
  bar.Update(0);
  EXPECT_EQ(out.str(), "\rtokenize  [>                       ]    0%  0 B of 4.0 KiB");
  clock.Advance(Seconds(1));
  out.str("");
  bar.Update(2048);
  EXPECT_EQ(out.str(),
            "\rtokenize  [============>           ]   50%  2.0 KiB of 4.0 KiB  2.0 KiB/s  1.0 s left");
  const size_t width = out.str().size();
  out.str("");
  bar.Update(4096);
  bar.Finish();
  EXPECT_EQ(out.str().size(), width + 1);  // blanks cover the longer line; a newline ends it
  EXPECT_EQ(out.str().back(), '\n');
}

TEST(ProgressBarTest, NoSpeedIsShownBeforeHalfASecondAndNoTimeLeftInFractionsOfOne) {
  FakeClock clock;
  std::ostringstream out;
  ProgressBar bar(Options(ProgressStyle::kTerminal), &clock, &out);
  clock.Advance(Seconds(0.000001));
  bar.Update(2048);
  EXPECT_EQ(out.str(), "\rtokenize  [============>           ]   50%  2.0 KiB of 4.0 KiB");
  clock.Advance(Seconds(0.6));
  out.str("");
  bar.Update(3072);
  EXPECT_EQ(out.str(),
            "\rtokenize  [==================>     ]   75%  3.0 KiB of 4.0 KiB  5.0 KiB/s  under 1 s left");
  std::ostringstream small;
  ProgressBar short_one(Options(ProgressStyle::kPlain), &clock, &small);
  clock.Advance(Seconds(0.0001));
  short_one.Update(4096);
  short_one.Finish();
  EXPECT_EQ(small.str(), "tokenize  4.0 KiB in 100 µs\n");
}

TEST(ProgressBarTest, AnInterruptedTerminalLineIsEnded) {
  FakeClock clock;
  std::ostringstream out;
  { ProgressBar(Options(ProgressStyle::kTerminal), &clock, &out).Update(1); }
  EXPECT_EQ(out.str().back(), '\n');
}

TEST(ProgressBarTest, UnknownTotal) {
  FakeClock clock;
  std::ostringstream out;
  ProgressBar bar(Options(ProgressStyle::kPlain, 0), &clock, &out);
  clock.Advance(Seconds(5));
  bar.Update(5120);
  EXPECT_EQ(out.str(), "tokenize  5.0 KiB  1.0 KiB/s\n");
}

TEST(ProgressBarTest, APipeIsNoTerminal) { EXPECT_EQ(ProgressStyleFor(-1, "xterm"), ProgressStyle::kPlain); }

}  // namespace
}  // namespace atl
