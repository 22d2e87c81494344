#include "worker/sync/rejection.h"

#include <fstream>
#include <sstream>

#include "common/status_detail.h"
#include "gtest/gtest.h"
#include "tests/paths.h"

namespace atoll {
namespace {

constexpr int kReasons = static_cast<int>(RefusalReason::kShuttingDown);

TEST(RejectionTest, EveryReasonStandsInTheDocument) {
  std::ifstream file(ATOLL_SOURCE_DIR "/docs/wire_format.md");
  std::stringstream text;
  text << file.rdbuf();
  for (int i = 1; i <= kReasons; ++i) {
    const std::string name(RefusalReasonName(static_cast<RefusalReason>(i)));
    EXPECT_NE(text.str().find("`" + name + "`"), std::string::npos) << name;
  }
}

TEST(RejectionTest, AReasonTravelsInAStatus) {
  for (int i = 1; i <= kReasons; ++i) {
    const auto reason = static_cast<RefusalReason>(i);
    EXPECT_EQ(ParseRefusalReason(RefusalReasonName(reason)), reason);
    EXPECT_EQ(RejectionOf(WithRejection(absl::AbortedError("x"), reason)), reason);
  }
  EXPECT_EQ(RejectionOf(absl::AbortedError("x")), RefusalReason::kNone);
  EXPECT_EQ(ParseRefusalReason("A_REASON_OF_TOMORROW"), RefusalReason::kNone);
}

TEST(RejectionTest, AReasonKeepsTheRetryDelay) {
  absl::Status status = WithDetail(absl::ResourceExhaustedError("full"),
                                   {.reason = "", .metadata = {}, .retry_after = Seconds(3)});
  status = WithRejection(status, RefusalReason::kOverBudget);
  EXPECT_EQ(RetryDelayOf(status), Seconds(3));
  EXPECT_EQ(RejectionOf(status), RefusalReason::kOverBudget);
  EXPECT_EQ(RetryDelayOf(absl::AbortedError("x")), std::nullopt);
}

Reaction React(absl::StatusCode code, RefusalReason reason = RefusalReason::kNone) {
  return ReactionTo(WithRejection(absl::Status(code, "x"), reason));
}

TEST(RejectionTest, TheReasonDecidesBeforeTheCode) {
  EXPECT_EQ(React(absl::StatusCode::kFailedPrecondition), Reaction::kExit);
  EXPECT_EQ(React(absl::StatusCode::kFailedPrecondition, RefusalReason::kStaleBase), Reaction::kAdoptHead);
  EXPECT_EQ(React(absl::StatusCode::kFailedPrecondition, RefusalReason::kWrongEpoch), Reaction::kRejoin);
  EXPECT_EQ(React(absl::StatusCode::kFailedPrecondition, RefusalReason::kSuperseded), Reaction::kExit);
  EXPECT_EQ(React(absl::StatusCode::kNotFound, RefusalReason::kNotAMember), Reaction::kRejoin);
  EXPECT_EQ(React(absl::StatusCode::kUnavailable), Reaction::kRetry);
  EXPECT_EQ(React(absl::StatusCode::kDeadlineExceeded), Reaction::kRetry);
  EXPECT_EQ(React(absl::StatusCode::kDataLoss), Reaction::kResume);
  EXPECT_EQ(React(absl::StatusCode::kUnknown), Reaction::kRetry);
  EXPECT_EQ(React(absl::StatusCode::kUnimplemented), Reaction::kRetry);
  EXPECT_EQ(React(absl::StatusCode::kUnauthenticated), Reaction::kExit);
  EXPECT_EQ(React(absl::StatusCode::kCancelled), Reaction::kExit) << "it was this side that cancelled";
}

TEST(RejectionTest, ExitCodes) {
  const auto code = [](absl::StatusCode status, RefusalReason reason) {
    return ExitCodeOf(WithRejection(absl::Status(status, "x"), reason));
  };
  using Code = absl::StatusCode;
  EXPECT_EQ(code(Code::kFailedPrecondition, RefusalReason::kSuperseded), ExitCode::kRefused);
  EXPECT_EQ(code(Code::kAlreadyExists, RefusalReason::kNameTaken), ExitCode::kRefused);
  EXPECT_EQ(code(Code::kFailedPrecondition, RefusalReason::kProtocolMismatch), ExitCode::kRefused);
  EXPECT_EQ(code(Code::kFailedPrecondition, RefusalReason::kManifestMismatch), ExitCode::kRefused);
  EXPECT_EQ(code(Code::kFailedPrecondition, RefusalReason::kDatasetMismatch), ExitCode::kBadFiles);
  EXPECT_EQ(code(Code::kInvalidArgument, RefusalReason::kWrongSize), ExitCode::kInternal);
  EXPECT_EQ(code(Code::kUnavailable, RefusalReason::kNone), ExitCode::kUnavailable);
}

}  // namespace
}  // namespace atoll
