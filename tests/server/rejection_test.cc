#include "server/rejection.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "common/errno.h"
#include "server/storage_rejection.h"

namespace atl {
namespace {

TEST(Rejection, TravelsWithAStatus) {
  const absl::Status status = Reject(Rejection{.reason = RejectionReason::kStaleBase,
                                               .metadata = {{kHeadVersionKey, "12"}, {"why", "a=b"}},
                                               .retry_after = Seconds(1.5)},
                                     "too late");
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(), "too late");
  const auto rejection = RejectionOf(status);
  ASSERT_TRUE(rejection.has_value());
  EXPECT_EQ(rejection->reason, RejectionReason::kStaleBase);
  EXPECT_EQ(rejection->metadata.at(kHeadVersionKey), "12");
  EXPECT_EQ(rejection->metadata.at("why"), "a=b");
  EXPECT_EQ(rejection->retry_after, Seconds(1.5));
}

TEST(Rejection, AStatusWithoutOneHasNone) {
  EXPECT_FALSE(RejectionOf(absl::OkStatus()).has_value());
  EXPECT_FALSE(RejectionOf(absl::InternalError("x")).has_value());
  EXPECT_EQ(ReasonOf(absl::InternalError("x")), RejectionReason::kNone);
}

TEST(Rejection, ARetryDelayKeepsTheReason) {
  const absl::Status status = WithRetryAfter(Reject(RejectionReason::kNotSeeded, "wait"), Seconds(2));
  EXPECT_EQ(ReasonOf(status), RejectionReason::kNotSeeded);
  EXPECT_EQ(RejectionOf(status)->retry_after, Seconds(2));
  const absl::Status plain = WithRetryAfter(absl::AbortedError("busy"), Seconds(2));
  EXPECT_TRUE(absl::IsAborted(plain));
  EXPECT_EQ(ReasonOf(plain), RejectionReason::kNone);
  EXPECT_TRUE(RejectionOf(plain)->retry_after.has_value());
}

TEST(StorageRejection, TroubleWithFilesIsNoFaultOfTheClient) {
  // What a read-only, moved or broken disk gives, and RocksDB's own.
  for (const absl::Status& status :
       {ErrnoToStatus(ENOENT, "statvfs /data"), ErrnoToStatus(EROFS, "open /data/x"),
        ErrnoToStatus(EPERM, "open /data/x"), ErrnoToStatus(EIO, "write /data/x"),
        ErrnoToStatus(ENOTDIR, "open /data/x"), ErrnoToStatus(EEXIST, "open /data/x"),
        absl::UnavailableError("put: IO error"), absl::DataLossError("get: Corruption"),
        absl::InternalError("put: Aborted")}) {
    const absl::Status told = ToRejection(status);
    EXPECT_EQ(ReasonOf(told), RejectionReason::kStorageFailing) << status;
    EXPECT_TRUE(absl::IsUnavailable(told)) << status;
    EXPECT_TRUE(RejectionOf(told)->retry_after.has_value()) << status;
    EXPECT_NE(told.message().find(status.message()), absl::string_view::npos) << told;
  }
  EXPECT_EQ(ReasonOf(ToRejection(ErrnoToStatus(ENOSPC, "write /data/x"))), RejectionReason::kStorageFull);
}

TEST(StorageRejection, ARuleOfTheStoreStaysWhatItIs) {
  for (const absl::Status& status :
       {absl::FailedPreconditionError("not seeded"), absl::AlreadyExistsError("accepted"),
        absl::InvalidArgumentError("the payload is empty")}) {
    EXPECT_EQ(ToRejection(status), status);
  }
}

}  // namespace
}  // namespace atl
