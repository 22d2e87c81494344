// What the fields of `sync` demand of each other and of the rest (protos/config/check_sync.h).

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "protos/config/run_config.h"
#include "tests/protos/sample_config.h"

namespace atl {
namespace {

using ::testing::HasSubstr;

std::string Complaint(const std::string& more) { return ComplaintAbout(SampleAnd(more)); }

TEST(ConfigSyncTest, BlockingWithOneFragmentIsTheDefault) {
  const auto options = ToRunOptions(ParseRunConfig(SampleAnd(""), "s.yaml").value());
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->sync.mode, SyncMode::kBlocking);
  EXPECT_EQ(options->sync.fragments, 1u);
  EXPECT_EQ(options->sync.pattern, FragmentPattern::kPacked);
  EXPECT_EQ(options->sync.max_in_flight, 1u);
}

TEST(ConfigSyncTest, IsReadWithAllFragmentsInFlightUnlessTold) {
  const std::string sync =
      "sync: {mode: overlapped, fragments: 2, pattern: strided, delay_steps: 5, alpha: 0.25, answer: "
      "blend}\n";
  const auto options = ToRunOptions(ParseRunConfig(SampleAnd(sync), "s.yaml").value());
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->sync.mode, SyncMode::kOverlapped);
  EXPECT_EQ(options->sync.pattern, FragmentPattern::kStrided);
  EXPECT_EQ(options->sync.answer, AnswerUse::kBlend);
  EXPECT_EQ(options->sync.delay_steps, 5u);
  EXPECT_EQ(options->sync.alpha, 0.25);
  EXPECT_EQ(options->sync.max_in_flight, 2u);
}

TEST(ConfigSyncTest, AnAnswerIsUsedBeforeTheNextPush) {
  EXPECT_EQ(Complaint("sync: {mode: overlapped, delay_steps: 49}\n"), "");
  EXPECT_THAT(Complaint("sync: {mode: overlapped, delay_steps: 50}\n"),
              HasSubstr("sync.delay_steps: 50 is not below inner.steps, which is 50"));
  EXPECT_EQ(Complaint("sync: {delay_steps: 50}\n"), "") << "blocking has no use for it";
  EXPECT_THAT(Complaint("sync: {alpha: 1.5}\n"), HasSubstr("sync.alpha: 1.5 is out of range"));
}

TEST(ConfigSyncTest, StepsTakenMeanwhileAreKeptUnlessABlendIsAskedFor) {
  const auto options =
      ToRunOptions(ParseRunConfig(SampleAnd("sync: {mode: overlapped}\n"), "s.yaml").value());
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->sync.answer, AnswerUse::kRebase);
  EXPECT_THAT(Complaint("sync: {mode: overlapped, alpha: 0.25}\n"),
              HasSubstr("sync.alpha: has an effect only with 'answer: blend'"));
}

TEST(ConfigSyncTest, FragmentsNeedSomethingToHold) {
  EXPECT_EQ(Complaint("sync: {fragments: 2, pattern: strided}\n"), "");
  EXPECT_THAT(Complaint("sync: {fragments: 3, pattern: strided}\n"), HasSubstr("model.gpt.layers is 2"));
  EXPECT_EQ(Complaint("sync: {fragments: 28}\n"), "");
  EXPECT_THAT(Complaint("sync: {fragments: 29}\n"), HasSubstr("the model's tensors, which is 28"));
}

TEST(ConfigSyncTest, OverlappedRoundsGather) {
  EXPECT_THAT(Complaint("sync: {mode: overlapped}\nround: {mode: async, staleness_limit: 7}\n"
                        "outer: {optimizer: delayed_nesterov}\n"),
              HasSubstr("sync.mode: 'overlapped' needs workers in step"));
}

}  // namespace
}  // namespace atl
