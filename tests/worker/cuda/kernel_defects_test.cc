#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "tests/worker/cuda/push_fixture.h"
#include "worker/cuda/kernel_defect.h"

namespace atl::device {
namespace {

struct DefectCase {
  const char* name;
  KernelDefect defect;
  CodecKind codec;
  uint64_t elements;
  /// Of the report of the executor, or of the difference from the codec.
  const char* finding;
};

void PrintTo(const DefectCase& c, std::ostream* out) { *out << c.name; }

class KernelDefectsTest : public testing::TestWithParam<DefectCase> {
 protected:
  void TearDown() override { planted_kernel_defect = KernelDefect::kNone; }
};

TEST_P(KernelDefectsTest, IsFound) {
  const DefectCase& c = GetParam();
  for (uint64_t seed = 0; seed < 2; ++seed) {
    const PushLaunch launch = {.codec = c.codec, .threads = 128, .seed = seed};
    const PushInput input = PushInput::Of(Input::kRandom, c.elements, 7 + seed);
    planted_kernel_defect = c.defect;
    const auto device = PushOnDevice(launch, input);
    planted_kernel_defect = KernelDefect::kNone;
    const auto host = PushOnHost(launch, input);
    ASSERT_TRUE(host.ok()) << host.status();
    const std::string finding =
        device.ok() ? Difference(*device, *host) : std::string(device.status().message());
    EXPECT_THAT(finding, testing::ContainsRegex(c.finding));
  }
}

constexpr DefectCase kDefects[] = {
    {"MissingBarrier", KernelDefect::kMissingBarrier, CodecKind::kInt8, 4096,
     "kernel encode_scaled, block 0: thread [0-9]+ (reads|writes) sent@.* at .*: thread [0-9]+ (wrote|read) "
     "it, with no barrier between"},
    {"Race", KernelDefect::kRace, CodecKind::kTopK64, 4096,
     "thread [0-9]+ writes positions@.*: thread [0-9]+ wrote it, with no barrier between"},
    {"OutOfBounds", KernelDefect::kOutOfBounds, CodecKind::kInt8, 200,
     "thread [0-9]+ reads base.2[0-9]+. .4 bytes. at .*: out of bounds, it has 200 elements"},
    {"WrongMask", KernelDefect::kWrongMask, CodecKind::kInt8, 4096,
     "payload byte [0-9]+ of 4160: .*, the codec has"},
    {"UnalignedTail", KernelDefect::kUnalignedTail, CodecKind::kInt4, 100,
     "writes payload.5. .4 bytes. at .*: unaligned, the address must be a multiple of 4"},
    {"UninitialisedShared", KernelDefect::kUninitialisedShared, CodecKind::kTopK128, 4096,
     "atomically changes counts@.*: nobody has written it"},
    {"DivergentBarrier", KernelDefect::kDivergentBarrier, CodecKind::kTopK64, 4096,
     "is at the barrier encode_topk.h:[0-9]+ while others wait at the barrier encode_topk.h:[0-9]+: the "
     "block's threads diverge"},
    {"LostAtomic", KernelDefect::kLostAtomic, CodecKind::kTopK64, 4096,
     "thread [0-9]+ (reads|writes) counts@.*: thread [0-9]+ (wrote|read) it, with no barrier between"},
    {"WrongSumOrder", KernelDefect::kWrongSumOrder, CodecKind::kFp32, uint64_t{16} * 4096,
     "squares of chunk [0-9]+: .*, AddSquares has"},
    {"ShortLastBlock", KernelDefect::kShortLastBlock, CodecKind::kTopK64, 4099,
     "block 1: thread [0-9]+ reads values@.*.2. .4 bytes. at .*: nobody has written it"},
    {"LeavesBeforeBarrier", KernelDefect::kLeavesBeforeBarrier, CodecKind::kTopK64, 4096,
     "no thread can go on: 127 of 128 threads wait at the barrier encode_topk.h:[0-9]+ .first: thread 0., 1 "
     "have left the kernel"},
};

INSTANTIATE_TEST_SUITE_P(Defects, KernelDefectsTest, testing::ValuesIn(kDefects),
                         [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace atl::device
