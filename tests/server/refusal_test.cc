#include "server/refusal.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "common/errno.h"
#include "server/storage_refusal.h"

namespace atoll {
namespace {

TEST(Refusal, TravelsWithAStatus) {
  const absl::Status status = Refuse(Refusal{.reason = RefusalReason::kStaleBase,
                                             .metadata = {{kHeadVersionKey, "12"}, {"why", "a=b"}},
                                             .retry_after = Seconds(1.5)},
                                     "too late");
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(), "too late");
  const auto refusal = RefusalOf(status);
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->reason, RefusalReason::kStaleBase);
  EXPECT_EQ(refusal->metadata.at(kHeadVersionKey), "12");
  EXPECT_EQ(refusal->metadata.at("why"), "a=b");
  EXPECT_EQ(refusal->retry_after, Seconds(1.5));
}

TEST(Refusal, AStatusWithoutOneHasNone) {
  EXPECT_FALSE(RefusalOf(absl::OkStatus()).has_value());
  EXPECT_FALSE(RefusalOf(absl::InternalError("x")).has_value());
  EXPECT_EQ(ReasonOf(absl::InternalError("x")), RefusalReason::kNone);
}

TEST(Refusal, ARetryDelayKeepsTheReason) {
  const absl::Status status = WithRetryAfter(Refuse(RefusalReason::kNotSeeded, "wait"), Seconds(2));
  EXPECT_EQ(ReasonOf(status), RefusalReason::kNotSeeded);
  EXPECT_EQ(RefusalOf(status)->retry_after, Seconds(2));
  const absl::Status plain = WithRetryAfter(absl::AbortedError("busy"), Seconds(2));
  EXPECT_TRUE(absl::IsAborted(plain));
  EXPECT_EQ(ReasonOf(plain), RefusalReason::kNone);
  EXPECT_TRUE(RefusalOf(plain)->retry_after.has_value());
}

TEST(StorageRefusal, TroubleWithFilesIsNoFaultOfTheClient) {
  // What a read-only, moved or broken disk gives, and RocksDB's own.
  for (const absl::Status& status :
       {ErrnoToStatus(ENOENT, "statvfs /data"), ErrnoToStatus(EROFS, "open /data/x"),
        ErrnoToStatus(EPERM, "open /data/x"), ErrnoToStatus(EIO, "write /data/x"),
        ErrnoToStatus(ENOTDIR, "open /data/x"), ErrnoToStatus(EEXIST, "open /data/x"),
        absl::UnavailableError("put: IO error"), absl::DataLossError("get: Corruption"),
        absl::InternalError("put: Aborted")}) {
    const absl::Status told = ToRefusal(status);
    EXPECT_EQ(ReasonOf(told), RefusalReason::kStorageFailing) << status;
    EXPECT_TRUE(absl::IsUnavailable(told)) << status;
    EXPECT_TRUE(RefusalOf(told)->retry_after.has_value()) << status;
    EXPECT_NE(told.message().find(status.message()), absl::string_view::npos) << told;
  }
  EXPECT_EQ(ReasonOf(ToRefusal(ErrnoToStatus(ENOSPC, "write /data/x"))), RefusalReason::kStorageFull);
}

TEST(StorageRefusal, ARuleOfTheStoreStaysWhatItIs) {
  for (const absl::Status& status :
       {absl::FailedPreconditionError("not seeded"), absl::AlreadyExistsError("accepted"),
        absl::InvalidArgumentError("the payload is empty")}) {
    EXPECT_EQ(ToRefusal(status), status);
  }
}

}  // namespace
}  // namespace atoll
