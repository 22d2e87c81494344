#include "cli/confirmation_check.h"

#include "common/signature.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace atl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kRun[] = "0123456789abcdef";
constexpr ContentHash kHash{.low = 5, .high = 6};

SignedConfirmation SignAs(const WorkerName& worker, const SigningKey& key, uint64_t version,
                          const ContentHash& hash) {
  SignedConfirmation one{
      .worker = worker,
      .public_key = key.public_key(),
      .epoch = Epoch(0xfedcba9876543210),
      .confirmation = {.fragment = FragmentId(1), .version = Version(version), .published = hash}};
  one.confirmation.signature =
      key.Sign(ConfirmationText({.run_id = kRun, .epoch = one.epoch, .worker = worker}, one.confirmation));
  return one;
}

class ConfirmationCheckTest : public ::testing::Test {
 protected:
  const SigningKey key_a_ = SigningKey::Generate();
  const SigningKey key_b_ = SigningKey::Generate();
  ConfirmationFile file_{.run_id = kRun,
                         .confirmations = {SignAs("a", key_a_, 3, kHash), SignAs("b", key_b_, 3, kHash)}};
};

TEST_F(ConfirmationCheckTest, AnExportIsReadBackAndChecksOut) {
  const auto read = ParseConfirmationFile(ConfirmationFileToJson(file_));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->run_id, file_.run_id);
  EXPECT_EQ(read->confirmations, file_.confirmations);
  const ConfirmationReport report = CheckConfirmations(*read, {});
  EXPECT_THAT(report.problems, IsEmpty());
  EXPECT_EQ(report.good, 2U);
  EXPECT_THAT(report.rows, ElementsAre(ElementsAre("1", "3", "00000000000000060000000000000005", "a,b", "")));
}

TEST_F(ConfirmationCheckTest, AChangedOneIsForged) {
  file_.confirmations[1].confirmation.published.low ^= 1;
  const ConfirmationReport report = CheckConfirmations(file_, {});
  EXPECT_THAT(report.problems, ElementsAre("the key of worker 'b' did not sign version 3 of fragment 1"));
  EXPECT_EQ(report.good, 1U);
}

TEST_F(ConfirmationCheckTest, TwoHashesOfOneVersionAreFoundInOneFileAndAcrossFiles) {
  ConfirmationFile elsewhere{.run_id = kRun,
                             .confirmations = {SignAs("c", key_a_, 3, {.low = 9, .high = 9})}};
  EXPECT_THAT(CheckConfirmations(elsewhere, {}).problems, IsEmpty());
  ASSERT_TRUE(AddConfirmations(elsewhere, file_).ok());
  EXPECT_THAT(CheckConfirmations(file_, {}).problems,
              ElementsAre(HasSubstr("workers signed 2 different hashes of version 3 of fragment 1")));
  elsewhere.run_id = "another";
  EXPECT_FALSE(AddConfirmations(elsewhere, file_).ok());
}

TEST_F(ConfirmationCheckTest, AnInventedKeyIsFoundByPinsOrByTheOtherFile) {
  const SigningKey invented = SigningKey::Generate();
  const ConfirmationFile elsewhere{.run_id = kRun, .confirmations = {SignAs("a", invented, 3, kHash)}};
  EXPECT_THAT(CheckConfirmations(elsewhere, {}).problems, IsEmpty()) << "alone, it looks right";
  EXPECT_THAT(CheckConfirmations(elsewhere, {{"a", key_a_.public_key()}}).problems,
              ElementsAre(HasSubstr("another key of worker 'a'")));
  ASSERT_TRUE(AddConfirmations(elsewhere, file_).ok());
  EXPECT_THAT(CheckConfirmations(file_, {}).problems,
              ElementsAre("worker 'a' appears with 2 different keys"));
}

TEST_F(ConfirmationCheckTest, WhatIsNoExportIsRejected) {
  for (const char* const wrong :
       {"", "[]", "{}", R"({"run_id": "x", "confirmations": [3]})",
        R"({"run_id": "x", "confirmations": [{"worker": "a", "public_key": "zz"}]})"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseConfirmationFile(wrong).status())) << wrong;
  }
}

}  // namespace
}  // namespace atl
