#include "client/setup/setup_error.h"

#include "gtest/gtest.h"

namespace atl {
namespace {

TEST(SetupErrorTest, CarriesTheExitCode) {
  const absl::Status error = WithExitCode(absl::InvalidArgumentError("why"), ExitCode::kStorage);
  EXPECT_EQ(SetupExitCode(error), ExitCode::kStorage);
  EXPECT_EQ(error.message(), "why");
  EXPECT_EQ(SetupExitCode(absl::InvalidArgumentError("why")),
            LocalExitCode(absl::InvalidArgumentError("why")));
  EXPECT_TRUE(WithExitCode(absl::OkStatus(), ExitCode::kStorage).ok());
}

}  // namespace
}  // namespace atl
