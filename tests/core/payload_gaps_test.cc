#include "core/payload_gaps.h"

#include <vector>

#include "core/codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/test_values.h"

namespace atl {
namespace {

/// Two blocks of 4096 values: gaps at 300 to 511, none behind the second tensor, and 7000 to 8191.
FragmentLayout Layout() {
  return {.id = FragmentId(3),
          .slots = {{.tensor = 0, .offset = 0, .elements = 300},
                    {.tensor = 1, .offset = 512, .elements = 4608},
                    {.tensor = 2, .offset = 5120, .elements = 1880}},
          .elements = 8192};
}

TEST(PayloadGaps, AreZeroInWhatEveryCodecMakesOfZeros) {
  std::vector<float> values = RandomValues(8192, 7);
  ClearGaps(Layout(), values);
  EXPECT_EQ(values[300], 0);
  EXPECT_EQ(values[8191], 0);
  EXPECT_NE(values[299], 0);
  EXPECT_NE(values[512], 0);
  EXPECT_NE(values[6999], 0);
  for (const CodecKind kind : kCodecKinds) {
    const Codec& codec = CodecFor(kind);
    const absl::Status checked = CheckGaps(codec, Encoded(codec, values), Layout());
    EXPECT_TRUE(checked.ok()) << CodecName(kind) << ": " << checked;
  }
}

TEST(PayloadGaps, NameTheFirstValueThatIsNotZero) {
  std::vector<float> values = RandomValues(8192, 7);
  ClearGaps(Layout(), values);
  for (const size_t bad : {size_t{8191}, size_t{7000}, size_t{511}, size_t{300}}) {
    values[bad] = 1;
    for (const CodecKind kind : kCodecKinds) {
      const Codec& codec = CodecFor(kind);
      const absl::Status checked = CheckGaps(codec, Encoded(codec, values), Layout());
      EXPECT_TRUE(absl::IsInvalidArgument(checked)) << CodecName(kind) << ", value " << bad;
    }
    const Codec& exact = CodecFor(CodecKind::kFp32);
    EXPECT_THAT(std::string(CheckGaps(exact, Encoded(exact, values), Layout()).message()),
                testing::HasSubstr("value " + std::to_string(bad) +
                                   " of fragment 3 lies between two tensors and is 1"));
  }
}

}  // namespace
}  // namespace atl
