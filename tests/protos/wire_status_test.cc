#include "common/status_detail.h"
#include "gmock/gmock.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "gtest/gtest.h"
#include "protos/wire/status.h"

namespace atl {
namespace {

TEST(WireStatusTest, EveryCodeBothWays) {
  EXPECT_TRUE(StatusFromGrpc(StatusToGrpc(absl::OkStatus())).ok());
  for (int code = 1; code <= 16; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code), "what, to whom, what to do");
    const grpc::Status wire = StatusToGrpc(status);
    EXPECT_EQ(static_cast<int>(wire.error_code()), code);
    EXPECT_EQ(wire.error_details(), "");
    EXPECT_EQ(StatusFromGrpc(wire), status);
  }
  EXPECT_EQ(StatusFromGrpc(grpc::Status(static_cast<grpc::StatusCode>(20), "x")).code(),
            absl::StatusCode::kUnknown);
}

TEST(WireStatusTest, DetailsBothWays) {
  const StatusDetail detail{"STALE_BASE", {{"head_version", "12"}}, Seconds(1.25)};
  const absl::Status status = WithDetail(absl::FailedPreconditionError("stale"), detail);
  const absl::Status back = StatusFromGrpc(StatusToGrpc(status));
  EXPECT_EQ(back.code(), status.code());
  EXPECT_EQ(back.message(), status.message());
  EXPECT_EQ(DetailOf(back), detail);
}

// Any client that knows google.rpc reads this.
TEST(WireStatusTest, OnTheWireItIsGoogleRpc) {
  const grpc::Status wire = StatusToGrpc(
      WithDetail(absl::ResourceExhaustedError("full"), {"OVER_BUDGET", {{"used", "7"}}, Seconds(2.5)}));
  google::rpc::Status rich;
  ASSERT_TRUE(rich.ParseFromString(wire.error_details()));
  EXPECT_EQ(rich.code(), 8);
  EXPECT_EQ(rich.message(), "full");
  ASSERT_EQ(rich.details_size(), 2);
  EXPECT_EQ(rich.details(0).type_url(), "type.googleapis.com/google.rpc.ErrorInfo");
  EXPECT_EQ(rich.details(1).type_url(), "type.googleapis.com/google.rpc.RetryInfo");
  google::rpc::ErrorInfo error;
  google::rpc::RetryInfo retry;
  ASSERT_TRUE(rich.details(0).UnpackTo(&error));
  ASSERT_TRUE(rich.details(1).UnpackTo(&retry));
  EXPECT_EQ(error.domain(), "atoll");
  EXPECT_EQ(error.reason(), "OVER_BUDGET");
  EXPECT_EQ(error.metadata().at("used"), "7");
  EXPECT_EQ(retry.retry_delay().seconds(), 2);
  EXPECT_EQ(retry.retry_delay().nanos(), 500'000'000);
}

TEST(WireStatusTest, StaysBelowTheLimitOfTrailers) {
  StatusDetail detail{"X", {}, Seconds(1)};
  for (int i = 0; i < 100; ++i) detail.metadata["key" + std::to_string(i)] = std::string(100, 'v');
  std::string message;
  for (int i = 0; i < 2000; ++i) message += "\u00e4";
  const grpc::Status wire = StatusToGrpc(WithDetail(absl::InternalError(message), detail));
  // Three bytes of percent-encoding for each byte that is not ASCII.
  EXPECT_LT(3 * wire.error_message().size() + wire.error_details().size() * 4 / 3, 8192u);
  EXPECT_TRUE(wire.error_message().ends_with("\u00e4..."));
  EXPECT_EQ(DetailOf(StatusFromGrpc(wire))->reason, "X");
}

TEST(WireStatusTest, ForeignDetailsAreIgnored) {
  google::rpc::Status rich;
  google::rpc::ErrorInfo error;
  error.set_domain("example.com");
  error.set_reason("STALE_BASE");
  rich.add_details()->PackFrom(error);
  google::rpc::RetryInfo retry;
  retry.mutable_retry_delay()->set_seconds(-5);
  rich.add_details()->PackFrom(retry);
  rich.add_details()->set_type_url("type.googleapis.com/google.rpc.ErrorInfo");
  rich.mutable_details(2)->set_value("\xff\xff");
  const auto code = grpc::StatusCode::UNAVAILABLE;
  EXPECT_EQ(DetailOf(StatusFromGrpc(grpc::Status(code, "x", rich.SerializeAsString()))), std::nullopt);
  EXPECT_EQ(DetailOf(StatusFromGrpc(grpc::Status(code, "x", "\xff not protobuf"))), std::nullopt);
}

}  // namespace
}  // namespace atl
