#include "worker/island/rank_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "worker/island/agreement.h"

namespace atl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string Hex(const std::string& bytes) {
  std::string text;
  for (const char byte : bytes) {
    constexpr char kDigits[] = "0123456789abcdef";
    text += kDigits[static_cast<uint8_t>(byte) >> 4];
    text += kDigits[static_cast<uint8_t>(byte) & 15];
  }
  return text;
}

// docs/reference/islands.md has the grammar.
TEST(RankCallTest, Bytes) {
  EXPECT_EQ(Hex(EncodeRankCall({.kind = RankCallKind::kDrop})), "02");
  EXPECT_EQ(Hex(EncodeRankCall({.kind = RankCallKind::kInnerStep, .learning_rate = 1.0})),
            "04000000000000f03f");
  EXPECT_EQ(Hex(EncodeRankCall({.kind = RankCallKind::kSetPartition, .partition = 1, .partitions = 3})),
            "050100000003000000");
  EXPECT_EQ(
      Hex(EncodeRankCall({.kind = RankCallKind::kBuild, .config = "ab", .has_data = true, .partition = 2})),
      "01020000006162010200000001000000");
  EXPECT_EQ(Hex(EncodeRankReply({.status = absl::NotFoundError("x"), .manifest_hash = ""})),
            "05000000010000007800000000");
}

TEST(RankCallTest, EverythingComesBack) {
  RankCall call{.kind = RankCallKind::kWriteFragment};
  call.fragment = {.id = FragmentId(2),
                   .slots = {{.tensor = 7, .offset = 256, .elements = 9, .embedding = true}},
                   .elements = 512};
  const auto fragment = DecodeRankCall(EncodeRankCall(call));
  ASSERT_TRUE(fragment.ok()) << fragment.status();
  EXPECT_EQ(fragment->fragment.id, FragmentId(2));
  ASSERT_EQ(fragment->fragment.slots.size(), 1u);
  EXPECT_EQ(fragment->fragment.slots[0].offset, 256u);
  EXPECT_TRUE(fragment->fragment.slots[0].embedding);
  EXPECT_FALSE(fragment->fragment.slots[0].averaged);
  EXPECT_EQ(fragment->fragment.elements, 512u);

  RankCall load{.kind = RankCallKind::kLoadState};
  load.state = {.kind = "adamw of 3 values",
                .optimizer_steps = 4,
                .partition = 1,
                .partitions = 2,
                .samples_consumed = 99,
                .random = std::string("\0r", 2),
                .moments = {}};
  const auto state = DecodeRankCall(EncodeRankCall(load));
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(state->state.kind, load.state.kind);
  EXPECT_EQ(state->state.random, load.state.random);
  EXPECT_EQ(state->state.samples_consumed, 99u);
}

TEST(RankCallTest, DamagedBytesAreRefused) {
  const std::string bytes = EncodeRankCall({.kind = RankCallKind::kSeek, .position = 5});
  EXPECT_FALSE(DecodeRankCall("").ok());
  EXPECT_FALSE(DecodeRankCall(bytes.substr(0, 4)).ok());
  EXPECT_FALSE(DecodeRankCall(bytes + "x").ok());
  EXPECT_FALSE(DecodeRankCall(std::string(1, '\x7f')).ok());
  EXPECT_FALSE(DecodeRankReply("abc").ok());
}

RankFacts Facts(uint32_t rank) {
  return {.rank = rank,
          .size = 2,
          .host = rank == 0 ? "h0" : "h1",
          .process = 17,
          .version = "1.0 (abc)",
          .torch = "1.13.1",
          .device = "cpu",
          .dataset = "d1",
          .name = "alpha"};
}

std::string Disagreement(const RankFacts& other) {
  const absl::Status status = CheckAgreement(Facts(0), other);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  return std::string(status.message());
}

TEST(AgreementTest, EqualRanksAgree) {
  const auto facts = DecodeRankFacts(EncodeRankFacts(Facts(1)));
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_TRUE(CheckAgreement(Facts(0), *facts).ok());
}

TEST(AgreementTest, OnlyRankZeroNeedsTheWorkersName) {
  RankFacts other = Facts(1);
  other.name = "";
  EXPECT_TRUE(CheckAgreement(Facts(0), other).ok());
}

TEST(AgreementTest, NamesWhatDiffersAndBothValues) {
  RankFacts other = Facts(1);
  other.size = 3;
  EXPECT_THAT(Disagreement(other),
              AllOf(HasSubstr("world size"), HasSubstr("(h0) has 2"), HasSubstr("(h1) has 3")));
  other = Facts(1);
  other.version = "1.1 (def)";
  EXPECT_THAT(Disagreement(other),
              AllOf(HasSubstr("program's version"), HasSubstr("1.0 (abc)"), HasSubstr("1.1 (def)")));
  other = Facts(1);
  other.torch = "2.6.0";
  EXPECT_THAT(Disagreement(other), AllOf(HasSubstr("LibTorch"), HasSubstr("1.13.1"), HasSubstr("2.6.0")));
  other = Facts(1);
  other.device = "cuda";
  EXPECT_THAT(Disagreement(other), AllOf(HasSubstr("--device"), HasSubstr("cpu"), HasSubstr("cuda")));
  other = Facts(1);
  other.dataset = "d2";
  EXPECT_THAT(Disagreement(other),
              AllOf(HasSubstr("fingerprint"), HasSubstr("d1"), HasSubstr("d2"), HasSubstr("--data")));
  other = Facts(1);
  other.name = "beta";
  EXPECT_THAT(Disagreement(other), AllOf(HasSubstr("name"), HasSubstr("alpha"), HasSubstr("beta")));
  EXPECT_THAT(Disagreement(Facts(0)), HasSubstr("none of the ranks 1 to 1"));
}

TEST(AgreementTest, AnotherModelIsNamed) {
  EXPECT_TRUE(CheckSameModel("m1", 1, "m1").ok());
  const absl::Status status = CheckSameModel("m1", 1, "m2");
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("m1"), HasSubstr("rank 1 has m2")));
}

TEST(AgreementTest, AnotherProtocolIsNamed) {
  std::string bytes = EncodeRankFacts(Facts(1));
  bytes[0] = 9;
  EXPECT_THAT(std::string(DecodeRankFacts(bytes).status().message()), HasSubstr("version 9"));
}

}  // namespace
}  // namespace atl
