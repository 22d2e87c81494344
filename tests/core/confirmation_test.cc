#include "core/confirmation.h"

#include "common/digest.h"
#include "common/signature.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace atl {
namespace {

using ::testing::HasSubstr;

// Frozen: a coordinator and a worker of different builds must sign the same bytes.
TEST(ConfirmationTest, TheTextIsThatOfTheProtocol) {
  const Confirmation confirmation{.fragment = FragmentId(2),
                                  .version = Version(17),
                                  .published = {.low = 18446744073709551615U, .high = 3}};
  EXPECT_EQ(
      ConfirmationText({.run_id = "0123456789abcdef", .epoch = Epoch(9), .worker = "w-1"}, confirmation),
      "atoll-confirmation/1\n0123456789abcdef\n9\nw-1\n2\n17\n18446744073709551615\n3\n");
}

constexpr char kRun[] = "0123456789abcdef";
constexpr Epoch kEpoch{9};
constexpr ContentHash kHash{.low = 5, .high = 6};

SignedConfirmation SignAs(const WorkerName& worker, const SigningKey& key, const ContentHash& hash) {
  SignedConfirmation one{
      .worker = worker,
      .public_key = key.public_key(),
      .epoch = kEpoch,
      .confirmation = {.fragment = FragmentId(0), .version = Version(3), .published = hash}};
  one.confirmation.signature =
      key.Sign(ConfirmationText({.run_id = kRun, .epoch = kEpoch, .worker = worker}, one.confirmation));
  return one;
}

TEST(JudgePeerTest, SaysWhatAConfirmationMeansToSomebodyElse) {
  const SigningKey key = SigningKey::Generate();
  const SignedConfirmation equal = SignAs("w1", key, kHash);
  const SignedConfirmation different = SignAs("w1", key, {.low = 1, .high = 1});
  EXPECT_EQ(JudgePeer(kRun, kEpoch, {}, kHash, equal), PeerFinding::kEqual);
  EXPECT_EQ(JudgePeer(kRun, kEpoch, {}, kHash, different), PeerFinding::kDifferent);
  // Of another epoch nothing is said about this one.
  EXPECT_EQ(JudgePeer(kRun, Epoch(8), {}, kHash, different), PeerFinding::kUncounted);
}

TEST(JudgePeerTest, NothingCanBeChangedWithoutTheKey) {
  const SigningKey key = SigningKey::Generate();
  SignedConfirmation forged = SignAs("w1", key, {.low = 1, .high = 1});
  forged.confirmation.published = kHash;
  EXPECT_EQ(JudgePeer(kRun, kEpoch, {}, kHash, forged), PeerFinding::kForged);
  forged = SignAs("w1", key, kHash);
  forged.worker = "w2";
  EXPECT_EQ(JudgePeer(kRun, kEpoch, {}, kHash, forged), PeerFinding::kForged);
  EXPECT_EQ(JudgePeer("another run", kEpoch, {}, kHash, SignAs("w1", key, kHash)), PeerFinding::kForged);
}

TEST(JudgePeerTest, AnInventedKeyCountsOnlyWhereNoneIsPinned) {
  const SigningKey invented = SigningKey::Generate();
  const SignedConfirmation one = SignAs("w1", invented, kHash);
  EXPECT_EQ(JudgePeer(kRun, kEpoch, {}, kHash, one), PeerFinding::kEqual);
  const PeerKeys pinned = {{"w1", SigningKey::Generate().public_key()}};
  EXPECT_EQ(JudgePeer(kRun, kEpoch, pinned, kHash, one), PeerFinding::kOtherKey);
  EXPECT_EQ(JudgePeer(kRun, kEpoch, pinned, kHash, SignAs("w9", invented, kHash)), PeerFinding::kUncounted);
}

TEST(PeerKeysTest, AreReadFromLinesAndMistakesAreNamed) {
  const std::string key = SigningKey::Generate().public_key();
  const auto keys = ParsePeerKeys("# ours\n\nw0 " + ToHex(key) + "\n  w1\t" + ToHex(key) + " \r\n");
  ASSERT_TRUE(keys.ok()) << keys.status();
  EXPECT_EQ(*keys, (PeerKeys{{"w0", key}, {"w1", key}}));
  for (const std::string& wrong :
       {std::string("w0"), "w0 " + ToHex(key) + " x", std::string("w0 abcd"), "-w0 " + ToHex(key)}) {
    const auto rejected = ParsePeerKeys("\n" + wrong + "\n");
    ASSERT_FALSE(rejected.ok()) << wrong;
    EXPECT_THAT(std::string(rejected.status().message()), HasSubstr("line 2"));
  }
  EXPECT_FALSE(ParsePeerKeys("w0 " + ToHex(key) + "\nw0 " + ToHex(key)).ok());
}

}  // namespace
}  // namespace atl
