// atollctl where it is about trust: signatures of workers, and the recommendation against strangers.
#include "cli/confirmation_check.h"

#include <cstdlib>

#include "common/digest.h"
#include "common/signature.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "protos/wire/confirmation.h"
#include "tests/cli/atollctl.h"
#include "tests/cli/fake_admin.h"

namespace atl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kUntrusted = 9;
constexpr char kRun[] = "0123456789abcdef";

class TrustCommandsTest : public ::testing::Test {
 protected:
  TrustCommandsTest() { admin_.confirmations.set_run_id(kRun); }

  void Sign(const WorkerName& worker, const SigningKey& key, uint64_t low) {
    SignedConfirmation one{
        .worker = worker,
        .public_key = key.public_key(),
        .epoch = Epoch(7),
        .confirmation = {
            .fragment = FragmentId(0), .version = Version(3), .published = {.low = low, .high = 1}}};
    one.confirmation.signature =
        key.Sign(ConfirmationText({.run_id = kRun, .epoch = Epoch(7), .worker = worker}, one.confirmation));
    *admin_.confirmations.add_confirmations() = SignedConfirmationToProto(one);
  }
  Outcome Run(const std::vector<std::string>& arguments) { return atollctl_.Run(arguments); }

  FakeAdmin admin_;
  const Atollctl atollctl_{{"--admin", admin_.address(), "--timeout", "5"}};
  const SigningKey key_a_ = SigningKey::Generate();
  const SigningKey key_b_ = SigningKey::Generate();
  TestDir dir_;
};

TEST_F(TrustCommandsTest, SignaturesAreFetchedInPagesCheckedAndExported) {
  Sign("a", key_a_, 5);
  Sign("b", key_b_, 5);
  const Outcome good =
      Run({"verify", "--confirmations", "--version", "3", "--export", dir_.File("signed.json")});
  EXPECT_EQ(good.exit_code, 0) << good.err;
  EXPECT_THAT(good.out,
              AllOf(HasSubstr("00000000000000010000000000000005  a,b"), HasSubstr("2 signatures are good")));
  EXPECT_THAT(admin_.calls().front(), HasSubstr("first_version: 3 last_version: 3"));
  const size_t calls = admin_.calls().size();
  // Without a coordinator.
  EXPECT_EQ(Run({"verify", "--confirmations", "--file", dir_.File("signed.json")}).exit_code, 0);
  ASSERT_TRUE(WriteFileAtomically(dir_.File("keys"), "a " + ToHex(key_b_.public_key()) + "\n", 0644).ok());
  const Outcome pinned = Run(
      {"verify", "--confirmations", "--file", dir_.File("signed.json"), "--peer-keys", dir_.File("keys")});
  EXPECT_EQ(pinned.exit_code, kUntrusted);
  EXPECT_THAT(pinned.err, HasSubstr("another key of worker 'a'"));
  EXPECT_EQ(admin_.calls().size(), calls);
}

TEST_F(TrustCommandsTest, PagesThatDoNotMoveOnAreRejected) {
  for (const char* const worker : {"a", "b", "c"}) Sign(worker, key_a_, 5);
  admin_.page_repeats = true;
  const Outcome outcome = Run({"verify", "--confirmations"});
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("make no progress"));
  EXPECT_EQ(admin_.calls().size(), 2u);
}

TEST_F(TrustCommandsTest, DifferentHashesAndForgedSignaturesExitWithTheirOwnCode) {
  Sign("a", key_a_, 5);
  Sign("b", key_b_, 6);
  Outcome outcome = Run({"verify", "--confirmations"});
  EXPECT_EQ(outcome.exit_code, kUntrusted);
  EXPECT_THAT(outcome.err, HasSubstr("workers signed 2 different hashes of version 3 of fragment 0"));
  admin_.confirmations.mutable_confirmations(1)->mutable_confirmation()->mutable_published()->set_low(5);
  outcome = Run({"verify", "--confirmations"});
  EXPECT_EQ(outcome.exit_code, kUntrusted);
  EXPECT_THAT(outcome.err, HasSubstr("the key of worker 'b' did not sign version 3 of fragment 0"));
}

TEST_F(TrustCommandsTest, StrictIsRecommendedWhereStrangersCanJoin) {
  constexpr char kYaml[] =
      "run: {name: open, workers: 4, rounds: 20}\n"
      "model: {gpt: {layers: 2, heads: 4, width: 64, context: 32, vocabulary: 256}}\n"
      "data: {tokenizer: bytes}\n"
      "inner: {steps: 50, learning_rate: 1e-3, batch: 12}\n";
  ASSERT_TRUE(WriteFileAtomically(dir_.File("run.yaml"), kYaml, 0644).ok());
  ASSERT_TRUE(
      WriteFileAtomically(dir_.File("strict.yaml"), std::string(kYaml) + "offenders: strict\n", 0644).ok());
  v1::TokenInfo* const token = admin_.tokens.add_tokens();
  token->set_role("worker");
  token->set_name("w0");
  EXPECT_THAT(Run({"config", "validate", dir_.File("run.yaml")}).err, IsEmpty()) << "for one worker only";
  token->clear_name();
  const Outcome open = Run({"config", "validate", dir_.File("run.yaml")});
  EXPECT_EQ(open.exit_code, 0);
  EXPECT_THAT(open.err, AllOf(HasSubstr("recommendation: "), HasSubstr("offenders: strict")));
  EXPECT_THAT(Run({"config", "validate", dir_.File("strict.yaml")}).err, IsEmpty());
  token->set_revoked_unix_nanos(1);
  EXPECT_THAT(Run({"config", "validate", dir_.File("run.yaml")}).err, IsEmpty()) << "revoked";
  ::setenv("ATOLL_ADMIN", "127.0.0.1:1", 1);
  EXPECT_THAT(Atollctl().Run({"config", "validate", dir_.File("run.yaml")}).err, IsEmpty())
      << "the environment names a coordinator for other commands";
  ::unsetenv("ATOLL_ADMIN");
  const Outcome away =
      Atollctl({"--admin", "127.0.0.1:1"}).Run({"config", "validate", dir_.File("run.yaml")});
  EXPECT_EQ(away.exit_code, 0);
  EXPECT_THAT(away.err, HasSubstr("whether unknown workers can join this run was not checked"));
  const Outcome told = Atollctl().Run({"config", "validate", dir_.File("run.yaml"), "--strangers"});
  EXPECT_THAT(told.err, HasSubstr("offenders: strict")) << "no coordinator is needed";
}

}  // namespace
}  // namespace atl
