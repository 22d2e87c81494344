#include "common/exit_codes.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace atl {
namespace {

TEST(ExitCodesTest, Defaults) {
  EXPECT_EQ(DefaultExitCode(absl::OkStatus()), ExitCode::kOk);
  EXPECT_EQ(DefaultExitCode(absl::InternalError("x")), ExitCode::kInternal);
  EXPECT_EQ(DefaultExitCode(absl::InvalidArgumentError("x")), ExitCode::kUsage);
  EXPECT_EQ(DefaultExitCode(absl::UnavailableError("x")), ExitCode::kUnavailable);
  EXPECT_EQ(DefaultExitCode(absl::ResourceExhaustedError("x")), ExitCode::kStorage);
  EXPECT_EQ(DefaultExitCode(absl::FailedPreconditionError("x")), ExitCode::kRejected);
  EXPECT_EQ(DefaultExitCode(absl::NotFoundError("x")), ExitCode::kBadFiles);
  EXPECT_EQ(DefaultExitCode(absl::CancelledError("x")), ExitCode::kInterrupted);
}

TEST(ExitCodesTest, TheTableNamesEveryCode) {
  for (const ExitCode code :
       {ExitCode::kOk, ExitCode::kInternal, ExitCode::kUsage, ExitCode::kUnavailable, ExitCode::kStorage,
        ExitCode::kRejected, ExitCode::kBadFiles, ExitCode::kNumerics, ExitCode::kUncounted,
        ExitCode::kUntrusted, ExitCode::kInterrupted}) {
    EXPECT_THAT(ExitCodeTable(), ::testing::HasSubstr(absl::StrCat(" ", ToInt(code), "  ")));
  }
}

}  // namespace
}  // namespace atl
