#include "common/human.h"

#include <limits>

#include "gtest/gtest.h"

namespace atl {
namespace {

TEST(HumanTest, Bytes) {
  EXPECT_EQ(HumanBytes(0), "0 B");
  EXPECT_EQ(HumanBytes(1023), "1023 B");
  EXPECT_EQ(HumanBytes(1024), "1.0 KiB");
  EXPECT_EQ(HumanBytes(12'900'000), "12.3 MiB");
  EXPECT_EQ(HumanBytes((uint64_t{1} << 20) - 1), "1.0 MiB");
  EXPECT_EQ(HumanBytes(uint64_t{118} << 30), "118 GiB");
  EXPECT_EQ(HumanBytes(UINT64_MAX), "16.0 EiB");
}

TEST(HumanTest, Counts) {
  EXPECT_EQ(HumanCount(0), "0");
  EXPECT_EQ(HumanCount(7), "7");
  EXPECT_EQ(HumanCount(0.5), "0.50");
  EXPECT_EQ(HumanCount(999), "999");
  EXPECT_EQ(HumanCount(999.9), "1.00k");
  EXPECT_EQ(HumanCount(1234), "1.23k");
  EXPECT_EQ(HumanCount(12'345), "12.3k");
  EXPECT_EQ(HumanCount(123'456), "123k");
  EXPECT_EQ(HumanCount(1.5e9), "1.50G");
  EXPECT_EQ(HumanCount(-1234), "-1.23k");
  EXPECT_EQ(HumanCount(std::numeric_limits<double>::quiet_NaN()), "nan");
  EXPECT_EQ(HumanRate(12'345, "tok"), "12.3k tok/s");
}

TEST(HumanTest, NounsOfACount) {
  EXPECT_EQ(Counted(0, "worker"), "0 workers");
  EXPECT_EQ(Counted(1, "worker"), "1 worker");
  EXPECT_EQ(Counted(2, "worker"), "2 workers");
}

TEST(HumanTest, Durations) {
  EXPECT_EQ(HumanDuration(Seconds(0)), "0 s");
  EXPECT_EQ(HumanDuration(Seconds(0.00085)), "850 µs");
  EXPECT_EQ(HumanDuration(Seconds(0.012)), "12 ms");
  EXPECT_EQ(HumanDuration(Seconds(0.9996)), "1.0 s");
  EXPECT_EQ(HumanDuration(Seconds(3.44)), "3.4 s");
  EXPECT_EQ(HumanDuration(Seconds(59.96)), "1m 00s");
  EXPECT_EQ(HumanDuration(Seconds(65)), "1m 05s");
  EXPECT_EQ(HumanDuration(Seconds(7380)), "2h 03m");
  EXPECT_EQ(HumanDuration(Seconds(3 * 86400 + 4 * 3600)), "3d 04h");
  EXPECT_EQ(HumanDuration(Seconds(-2)), "-2.0 s");
  EXPECT_EQ(HumanDuration(Duration::max()), "106751d 23h");
  EXPECT_EQ(HumanDuration(Duration::min()), "-106751d 23h");
}

}  // namespace
}  // namespace atl
