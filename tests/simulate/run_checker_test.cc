// Each property of simulate/run_checker.h can fail.

#include "simulate/run_checker.h"

#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace atl {
namespace {

using ::testing::HasSubstr;

constexpr size_t kElements = 2;

std::string Payload(float first, float second) {
  const float values[kElements] = {first, second};
  return {reinterpret_cast<const char*>(values), sizeof(values)};
}

Contribution From(const std::string& worker, uint64_t base, uint32_t crc32c = 1) {
  Contribution contribution;
  contribution.key = {
      .epoch = Epoch(1), .fragment = FragmentId(0), .base = Version(base), .worker = WorkerName(worker)};
  contribution.codec = CodecKind::kFp32;
  contribution.payload_bytes = sizeof(float) * kElements;
  contribution.payload_crc32c = crc32c;
  contribution.tokens = 24;
  contribution.steps = 1;
  return contribution;
}

/// SGD with rate 1 from zero: theta is minus the sum of the means.
RoundRecord Round(uint64_t version, std::vector<Contribution> contributions) {
  RoundRecord record;
  record.fragment = FragmentId(0);
  record.version = Version(version);
  record.outer.optimizer = OuterOptimizerKind::kNesterov;
  record.outer.learning_rate = 1;
  record.outer.momentum = 0;
  record.weights.assign(contributions.size(), 1.0F / static_cast<float>(contributions.size()));
  for (const Contribution& contribution : contributions) record.committed_tokens += contribution.tokens;
  record.contributions = std::move(contributions);
  return record;
}

ContentHash HashOf(const std::vector<float>& values) {
  const Hash128 hash = HashBytes(std::as_bytes(std::span(values)));
  return {.low = hash.low, .high = hash.high};
}

class RunCheckerTest : public ::testing::Test {
 protected:
  RunCheckerTest() { checker_.OnSeeded(FragmentId(0), {0, 0}); }

  /// The first round, of one contribution of (3, -1).
  RoundRecord First() {
    RoundRecord record = Round(1, {From("w0", 0)});
    record.parameters = HashOf({-3, 1});
    record.state = HashOf({3, -1});
    record.published = record.parameters;
    return record;
  }
  std::string Complaint() { return std::string(checker_.status().message()); }

  RunChecker checker_{{.tokens_per_step = 24, .most_steps = 1, .total_tokens = 48},
                      SerialModel(MergeWeighting::kTokens, std::nullopt)};
};

TEST_F(RunCheckerTest, ARoundOfWhatWasAcceptedIsFine) {
  checker_.OnAccepted(From("w0", 0), Payload(3, -1));
  checker_.OnAcknowledged(WorkerName("w0"), FragmentId(0), Version(0), 1);
  checker_.OnCommitted(First());
  checker_.OnAcknowledged(WorkerName("w0"), FragmentId(0), Version(0), 1);
  checker_.OnPulled(WorkerName("w0"), FragmentId(0), Version(1));
  EXPECT_TRUE(checker_.status().ok()) << checker_.status();
  EXPECT_EQ(checker_.committed(), 1U);
}

TEST_F(RunCheckerTest, AnAcknowledgmentOfNothing) {
  checker_.OnAcknowledged(WorkerName("w0"), FragmentId(0), Version(0), 1);
  EXPECT_THAT(Complaint(), HasSubstr("was acknowledged, and is not on the disk"));
}

TEST_F(RunCheckerTest, AnAcknowledgmentOfOtherBytes) {
  checker_.OnAccepted(From("w0", 0), Payload(3, -1));
  checker_.OnAcknowledged(WorkerName("w0"), FragmentId(0), Version(0), 2);
  EXPECT_THAT(Complaint(), HasSubstr("was acknowledged, and is not on the disk"));
}

TEST_F(RunCheckerTest, ALostContribution) {
  checker_.OnAccepted(From("w0", 0), Payload(3, -1));
  checker_.OnAccepted(From("w1", 0), Payload(1, 1));
  checker_.OnCommitted(First());
  EXPECT_THAT(Complaint(), HasSubstr("leaves out w1's contribution"));
}

TEST_F(RunCheckerTest, AContributionThatCountsAgain) {
  checker_.OnAccepted(From("w0", 0), Payload(3, -1));
  checker_.OnCommitted(First());
  checker_.OnCommitted(Round(2, {From("w0", 0)}));
  EXPECT_THAT(Complaint(), HasSubstr("is not one that was accepted"));
}

TEST_F(RunCheckerTest, AContributionThatIsAcceptedAgain) {
  checker_.OnAccepted(From("w0", 0), Payload(3, -1));
  checker_.OnCommitted(First());
  checker_.OnAccepted(From("w0", 0), Payload(3, -1));
  EXPECT_THAT(Complaint(), HasSubstr("was accepted twice"));
}

TEST_F(RunCheckerTest, AContributionToTheFuture) {
  checker_.OnAccepted(From("w0", 1), Payload(3, -1));
  EXPECT_THAT(Complaint(), HasSubstr("before that version existed"));
}

TEST_F(RunCheckerTest, AHeadThatDoesNotFollow) {
  checker_.OnAccepted(From("w0", 0), Payload(3, -1));
  RoundRecord record = First();
  record.version = Version(2);
  checker_.OnCommitted(record);
  EXPECT_THAT(Complaint(), HasSubstr("version 2 of fragment 0 follows version 0"));
}

TEST_F(RunCheckerTest, AWrongBit) {
  checker_.OnAccepted(From("w0", 0), Payload(3, -1));
  RoundRecord record = First();
  record.parameters = HashOf({-3, 1.0000001F});
  checker_.OnCommitted(record);
  EXPECT_THAT(Complaint(), HasSubstr("is not what its 1 contributions make"));
}

TEST_F(RunCheckerTest, AWrongWeight) {
  checker_.OnAccepted(From("w0", 0), Payload(3, -1));
  RoundRecord record = First();
  record.weights[0] = 0.5F;
  checker_.OnCommitted(record);
  EXPECT_THAT(Complaint(), HasSubstr("the weight of w0 is 0.5 and not 1"));
}

TEST_F(RunCheckerTest, AClaimOfMoreThanWasAssigned) {
  Contribution claims = From("w0", 0);
  claims.tokens = 25;
  checker_.OnAccepted(claims, Payload(3, -1));
  EXPECT_THAT(Complaint(), HasSubstr("it claims 25 tokens in 1 steps of 24"));
}

TEST_F(RunCheckerTest, AClaimOfMoreSteps) {
  Contribution claims = From("w0", 0);
  claims.steps = 2;
  checker_.OnAccepted(claims, Payload(3, -1));
  EXPECT_THAT(Complaint(), HasSubstr("it claims 2 steps, and 1 were assigned"));
}

TEST_F(RunCheckerTest, APayloadOfAnotherSize) {
  checker_.OnAccepted(From("w0", 0), "abcd");
  EXPECT_THAT(Complaint(), HasSubstr("it has 4 bytes for 2 values"));
}

TEST_F(RunCheckerTest, AValueThatIsNotFinite) {
  checker_.OnAccepted(From("w0", 0), Payload(3, std::numeric_limits<float>::infinity()));
  EXPECT_THAT(Complaint(), HasSubstr("values that are not finite"));
}

TEST_F(RunCheckerTest, ASumInTheOrderOfArrival) {
  checker_.OnAccepted(From("w0", 0), Payload(3, -1));
  checker_.OnAccepted(From("w1", 0), Payload(1, 1));
  checker_.OnCommitted(Round(1, {From("w1", 0), From("w0", 0)}));
  EXPECT_THAT(Complaint(), HasSubstr("does not sum in the order of keys"));
}

TEST_F(RunCheckerTest, ABudgetThatIsNamedWrongly) {
  checker_.OnAccepted(From("w0", 0), Payload(3, -1));
  RoundRecord record = First();
  record.committed_tokens = 25;
  checker_.OnCommitted(record);
  EXPECT_THAT(Complaint(), HasSubstr("names 25 committed tokens; its contributions have 24"));
}

TEST_F(RunCheckerTest, AWorkerThatGoesBack) {
  checker_.OnAccepted(From("w0", 0), Payload(3, -1));
  checker_.OnCommitted(First());
  checker_.OnPulled(WorkerName("w1"), FragmentId(0), Version(1));
  checker_.OnPulled(WorkerName("w1"), FragmentId(0), Version(0));
  EXPECT_THAT(Complaint(), HasSubstr("got version 0 of fragment 0 after version 1"));
}

TEST_F(RunCheckerTest, AVersionThatIsServedTooEarly) {
  checker_.OnPulled(WorkerName("w1"), FragmentId(0), Version(1));
  EXPECT_THAT(Complaint(), HasSubstr("before it was committed"));
}

}  // namespace
}  // namespace atl
