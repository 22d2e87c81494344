#include "client/sync/rejection.h"

#include <fstream>
#include <sstream>

#include "common/status_detail.h"
#include "gtest/gtest.h"
#include "tests/paths.h"

namespace atl {
namespace {

constexpr int kReasons = static_cast<int>(RejectionReason::kShuttingDown);

TEST(RejectionTest, EveryReasonStandsInTheDocument) {
  std::ifstream file(ATOLL_SOURCE_DIR "/docs/reference/wire_format.md");
  std::stringstream text;
  text << file.rdbuf();
  for (int i = 1; i <= kReasons; ++i) {
    const std::string name(RejectionReasonName(static_cast<RejectionReason>(i)));
    EXPECT_NE(text.str().find("`" + name + "`"), std::string::npos) << name;
  }
}

TEST(RejectionTest, AReasonTravelsInAStatus) {
  for (int i = 1; i <= kReasons; ++i) {
    const auto reason = static_cast<RejectionReason>(i);
    EXPECT_EQ(ParseRejectionReason(RejectionReasonName(reason)), reason);
    EXPECT_EQ(RejectionReasonOf(WithRejection(absl::AbortedError("x"), reason)), reason);
  }
  EXPECT_EQ(RejectionReasonOf(absl::AbortedError("x")), RejectionReason::kNone);
  EXPECT_EQ(ParseRejectionReason("A_REASON_OF_TOMORROW"), RejectionReason::kNone);
}

TEST(RejectionTest, AReasonKeepsTheRetryDelay) {
  absl::Status status = WithDetail(absl::ResourceExhaustedError("full"),
                                   {.reason = "", .metadata = {}, .retry_after = Seconds(3)});
  status = WithRejection(status, RejectionReason::kOverBudget);
  EXPECT_EQ(RetryDelayOf(status), Seconds(3));
  EXPECT_EQ(RejectionReasonOf(status), RejectionReason::kOverBudget);
  EXPECT_EQ(RetryDelayOf(absl::AbortedError("x")), std::nullopt);
}

Reaction React(absl::StatusCode code, RejectionReason reason = RejectionReason::kNone) {
  return ReactionTo(WithRejection(absl::Status(code, "x"), reason));
}

TEST(RejectionTest, TheReasonDecidesBeforeTheCode) {
  EXPECT_EQ(React(absl::StatusCode::kFailedPrecondition), Reaction::kExit);
  EXPECT_EQ(React(absl::StatusCode::kFailedPrecondition, RejectionReason::kStaleBase), Reaction::kAdoptHead);
  EXPECT_EQ(React(absl::StatusCode::kFailedPrecondition, RejectionReason::kWrongEpoch), Reaction::kRejoin);
  EXPECT_EQ(React(absl::StatusCode::kFailedPrecondition, RejectionReason::kSuperseded), Reaction::kExit);
  EXPECT_EQ(React(absl::StatusCode::kNotFound, RejectionReason::kNotAMember), Reaction::kRejoin);
  EXPECT_EQ(React(absl::StatusCode::kUnavailable), Reaction::kRetry);
  EXPECT_EQ(React(absl::StatusCode::kDeadlineExceeded), Reaction::kRetry);
  EXPECT_EQ(React(absl::StatusCode::kDataLoss), Reaction::kResume);
  EXPECT_EQ(React(absl::StatusCode::kUnknown), Reaction::kRetry);
  EXPECT_EQ(React(absl::StatusCode::kUnimplemented), Reaction::kRetry);
  EXPECT_EQ(React(absl::StatusCode::kUnauthenticated), Reaction::kExit);
  EXPECT_EQ(React(absl::StatusCode::kCancelled), Reaction::kExit) << "it was this side that cancelled";
}

TEST(RejectionTest, ExitCodes) {
  const auto code = [](absl::StatusCode status, RejectionReason reason) {
    return ExitCodeOf(WithRejection(absl::Status(status, "x"), reason));
  };
  using Code = absl::StatusCode;
  EXPECT_EQ(code(Code::kFailedPrecondition, RejectionReason::kSuperseded), ExitCode::kRejected);
  EXPECT_EQ(code(Code::kAlreadyExists, RejectionReason::kNameTaken), ExitCode::kRejected);
  EXPECT_EQ(code(Code::kFailedPrecondition, RejectionReason::kProtocolMismatch), ExitCode::kRejected);
  EXPECT_EQ(code(Code::kFailedPrecondition, RejectionReason::kManifestMismatch), ExitCode::kRejected);
  EXPECT_EQ(code(Code::kFailedPrecondition, RejectionReason::kDatasetMismatch), ExitCode::kBadFiles);
  EXPECT_EQ(code(Code::kInvalidArgument, RejectionReason::kWrongSize), ExitCode::kInternal);
  EXPECT_EQ(code(Code::kUnavailable, RejectionReason::kNone), ExitCode::kUnavailable);
}

}  // namespace
}  // namespace atl
