#include "common/errno.h"

#include <cerrno>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace atl {
namespace {

TEST(ErrnoTest, NamesWhatWasDoneAndGivesAdvice) {
  const absl::Status status = ErrnoToStatus(ENOSPC, "write /data/a");
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(),
            "write /data/a: No space left on device (the disk is full: free some space and retry)");
}

TEST(ErrnoTest, MapsCodes) {
  const std::pair<int, absl::StatusCode> cases[] = {
      {EDQUOT, absl::StatusCode::kResourceExhausted},
      {EFBIG, absl::StatusCode::kResourceExhausted},
      {EMFILE, absl::StatusCode::kResourceExhausted},
      {ENOENT, absl::StatusCode::kNotFound},
      {EEXIST, absl::StatusCode::kAlreadyExists},
      {EACCES, absl::StatusCode::kPermissionDenied},
      {EROFS, absl::StatusCode::kPermissionDenied},
      {EADDRINUSE, absl::StatusCode::kUnavailable},
      {ECONNREFUSED, absl::StatusCode::kUnavailable},
      {EINVAL, absl::StatusCode::kInvalidArgument},
      {EISDIR, absl::StatusCode::kFailedPrecondition},
      {ELOOP, absl::StatusCode::kFailedPrecondition},
      {ENXIO, absl::StatusCode::kFailedPrecondition},
      {ENOTDIR, absl::StatusCode::kFailedPrecondition},
      {EIO, absl::StatusCode::kDataLoss},
      {EPIPE, absl::StatusCode::kInternal},
  };
  for (const auto& [error, code] : cases) {
    EXPECT_EQ(ErrnoToStatus(error, "x").code(), code) << error;
    EXPECT_EQ(ErrnoOf(ErrnoToStatus(error, "x")), error);
  }
  EXPECT_EQ(ErrnoOf(absl::NotFoundError("x")), std::nullopt);
  EXPECT_EQ(ErrnoOf(absl::OkStatus()), std::nullopt);
}

}  // namespace
}  // namespace atl
