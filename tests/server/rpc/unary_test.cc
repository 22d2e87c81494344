// Short calls: what is refused before the coordinator sees it, and how refusals arrive.
#include <cmath>
#include <latch>

#include "gmock/gmock.h"
#include "tests/server/rpc/rpc_fixture.h"

namespace atl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class UnaryTest : public RpcFixture {
 protected:
  grpc::Status Join(const v1::JoinRequest& request) {
    v1::JoinReply reply;
    return data_->Join(Context().get(), request, &reply);
  }
};

TEST_F(UnaryTest, AnotherProtocolMajorIsRejectedWithBothVersions) {
  coordinator_.on_join = [](const JoinCall&) -> absl::StatusOr<JoinReply> {
    ADD_FAILURE() << "the coordinator must not see it";
    return JoinReply();
  };
  Serve();
  v1::JoinRequest request = JoinAs("w1");
  request.mutable_protocol()->set_major(kProtocolMajor + 1);
  const grpc::Status status = Join(request);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(ReasonIn(status), "PROTOCOL_MISMATCH");
  EXPECT_THAT(status.error_message(), AllOf(HasSubstr("protocol 2."), HasSubstr("this side 1.")));
  request.clear_protocol();  // a client that does not say
  EXPECT_EQ(ReasonIn(Join(request)), "PROTOCOL_MISMATCH");
}

TEST_F(UnaryTest, AHigherMinorIsTolerated) {
  Serve();
  v1::JoinRequest request = JoinAs("w1");
  request.mutable_protocol()->set_minor(kProtocolMinor + 7);
  EXPECT_TRUE(Join(request).ok());
}

TEST_F(UnaryTest, FieldsThatMeanNothingAreRejectedByName) {
  Serve();
  v1::JoinRequest short_secret = JoinAs("w1");
  short_secret.set_secret("short");
  EXPECT_THAT(Join(short_secret).error_message(), HasSubstr("secret: has 5 bytes; 16 to 64"));
  v1::JoinRequest no_role = JoinAs("w1");
  no_role.clear_role();
  EXPECT_THAT(Join(no_role).error_message(), HasSubstr("role"));
  EXPECT_EQ(Join(JoinAs("Not A Name")).error_code(), grpc::StatusCode::INVALID_ARGUMENT);

  v1::HeartbeatReply reply;
  const grpc::Status nobody = data_->Heartbeat(Context().get(), v1::HeartbeatRequest(), &reply);
  EXPECT_EQ(nobody.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(nobody.error_message(), HasSubstr("worker.worker"));

  v1::GetStatusRequest history;
  history.set_history(1001);
  v1::GetStatusReply status;
  EXPECT_THAT(admin_->GetStatus(Context().get(), history, &status).error_message(), HasSubstr("1000"));
}

TEST_F(UnaryTest, AJoinCarriesEverythingBothWays) {
  coordinator_.on_join = [](const JoinCall& call) -> absl::StatusOr<JoinReply> {
    EXPECT_EQ(call.worker, "w1");
    EXPECT_EQ(call.role, WorkerRole::kTrainer);
    EXPECT_EQ(call.manifest_hash, "hash");
    EXPECT_EQ(call.dataset.value().train_tokens, 99u);
    EXPECT_EQ(call.expected_run, "mine");
    JoinReply result;
    result.member = {.run_id = "run",
                     .epoch = Epoch(0xfedcba9876543210),
                     .worker = call.worker,
                     .incarnation = Incarnation(3)};
    result.lease = Seconds(15);
    result.manifest = Manifest{{{.name = "t", .shape = {2, 3}, .embedding = true}}};
    result.data = DataPart{.partition = 1, .partitions = 4, .samples_consumed = 5};
    result.fragments = {{FragmentId(0), Version(8), 256}};
    result.accepted = {{FragmentId(0), Version(8), 0}};
    result.seed_granted = true;
    return result;
  };
  Serve();
  v1::JoinRequest request = JoinAs("w1");
  request.set_manifest_hash("hash");
  request.mutable_dataset()->set_train_tokens(99);
  request.set_expected_run("mine");
  v1::JoinReply reply;
  ASSERT_TRUE(data_->Join(Context().get(), request, &reply).ok());
  EXPECT_EQ(reply.protocol().major(), kProtocolMajor);
  EXPECT_EQ(reply.epoch(), 0xfedcba9876543210u);
  EXPECT_EQ(reply.incarnation(), 3u);
  EXPECT_DOUBLE_EQ(reply.lease_s(), 15);
  EXPECT_EQ(reply.manifest().tensors(0).shape(1), 3);
  EXPECT_EQ(reply.data().partitions(), 4u);
  EXPECT_EQ(reply.fragments(0).version(), 8u);
  EXPECT_EQ(reply.accepted(0).base_version(), 8u);
  EXPECT_TRUE(reply.seed_granted());
}

TEST_F(UnaryTest, AbsurdTimesOfAHeartbeatAreNotKnown) {
  ProgressReport seen;
  coordinator_.on_heartbeat = [&](const HeartbeatCall& call) -> absl::StatusOr<HeartbeatReply> {
    seen = call.progress;
    return HeartbeatReply();
  };
  Serve();
  v1::HeartbeatRequest request;
  *request.mutable_worker() = Self();
  const std::pair<TimeUse, double> claims[] = {{TimeUse::kCompute, 1e308},
                                               {TimeUse::kWait, 12.5},
                                               {TimeUse::kPush, -1},
                                               {TimeUse::kPull, std::nan("")},
                                               {TimeUse::kData, kLongestTimeSpent * 1.01}};
  for (const auto& [use, seconds] : claims) {
    for (auto* const times : {request.mutable_progress()->mutable_training_time(),
                              request.mutable_progress()->mutable_exchange_time()}) {
      v1::TimeSpent& one = *times->Add();
      one.set_use(static_cast<v1::TimeUse>(use));
      one.set_seconds(seconds);
    }
  }
  v1::HeartbeatReply reply;
  ASSERT_TRUE(data_->Heartbeat(Context().get(), request, &reply).ok());
  EXPECT_DOUBLE_EQ(seen.training.total(), 12.5);
  EXPECT_DOUBLE_EQ(seen.exchanges.total(), 12.5);
}

struct ReasonCase {
  RejectionReason reason;
  grpc::StatusCode code;
};

class RejectionTest : public RpcFixture, public ::testing::WithParamInterface<ReasonCase> {};

TEST_P(RejectionTest, ArrivesWithCodeReasonMetadataAndDelay) {
  coordinator_.on_heartbeat = [](const HeartbeatCall&) -> absl::StatusOr<HeartbeatReply> {
    return Reject(
        {.reason = GetParam().reason, .metadata = {{"head_version", "12"}}, .retry_after = Seconds(2.5)},
        "because");
  };
  Serve();
  v1::HeartbeatRequest request;
  *request.mutable_worker() = Self();
  v1::HeartbeatReply reply;
  const grpc::Status status = data_->Heartbeat(Context().get(), request, &reply);
  EXPECT_EQ(status.error_code(), GetParam().code);
  EXPECT_EQ(status.error_message(), "because");
  const auto detail = DetailOf(StatusFromGrpc(status));
  ASSERT_TRUE(detail);
  EXPECT_EQ(detail->reason, RejectionReasonName(GetParam().reason));
  EXPECT_EQ(detail->metadata.at("head_version"), "12");
  EXPECT_EQ(detail->retry_after, Seconds(2.5));
}

using enum RejectionReason;
using grpc::StatusCode;
INSTANTIATE_TEST_SUITE_P(All, RejectionTest,
                         ::testing::Values(ReasonCase{kProtocolMismatch, StatusCode::FAILED_PRECONDITION},
                                           ReasonCase{kWrongRun, StatusCode::FAILED_PRECONDITION},
                                           ReasonCase{kWrongEpoch, StatusCode::FAILED_PRECONDITION},
                                           ReasonCase{kSuperseded, StatusCode::FAILED_PRECONDITION},
                                           ReasonCase{kNotAMember, StatusCode::NOT_FOUND},
                                           ReasonCase{kNameTaken, StatusCode::ALREADY_EXISTS},
                                           ReasonCase{kBanned, StatusCode::PERMISSION_DENIED},
                                           ReasonCase{kManifestMismatch, StatusCode::FAILED_PRECONDITION},
                                           ReasonCase{kDatasetMismatch, StatusCode::FAILED_PRECONDITION},
                                           ReasonCase{kStaleBase, StatusCode::FAILED_PRECONDITION},
                                           ReasonCase{kUnknownBase, StatusCode::INVALID_ARGUMENT},
                                           ReasonCase{kWrongCodec, StatusCode::INVALID_ARGUMENT},
                                           ReasonCase{kWrongSize, StatusCode::INVALID_ARGUMENT},
                                           ReasonCase{kWrongFragment, StatusCode::INVALID_ARGUMENT},
                                           ReasonCase{kBadChunk, StatusCode::DATA_LOSS},
                                           ReasonCase{kNotFinite, StatusCode::INVALID_ARGUMENT},
                                           ReasonCase{kAlreadyPushed, StatusCode::ALREADY_EXISTS},
                                           ReasonCase{kNotSeeded, StatusCode::FAILED_PRECONDITION},
                                           ReasonCase{kOverBudget, StatusCode::RESOURCE_EXHAUSTED},
                                           ReasonCase{kStorageFull, StatusCode::RESOURCE_EXHAUSTED},
                                           ReasonCase{kStorageFailing, StatusCode::UNAVAILABLE},
                                           ReasonCase{kShuttingDown, StatusCode::UNAVAILABLE}),
                         [](const auto& each) {
                           return std::string(RejectionReasonName(each.param.reason));
                         });

TEST_F(UnaryTest, WhatMayBeTriedAgainSaysWhen) {
  coordinator_.on_heartbeat = [](const HeartbeatCall&) -> absl::StatusOr<HeartbeatReply> {
    return absl::ResourceExhaustedError("full");
  };
  Serve();
  v1::HeartbeatRequest request;
  *request.mutable_worker() = Self();
  v1::HeartbeatReply reply;
  const auto detail = DetailOf(StatusFromGrpc(data_->Heartbeat(Context().get(), request, &reply)));
  ASSERT_TRUE(detail && detail->retry_after);
  EXPECT_GT(*detail->retry_after, Duration(0));
}

TEST_F(UnaryTest, BeyondTheWaitingRoomCallsAreToldToComeBack) {
  std::latch release(1);
  std::atomic<int> inside{0};
  coordinator_.on_heartbeat = [&](const HeartbeatCall&) -> absl::StatusOr<HeartbeatReply> {
    ++inside;
    release.wait();
    return HeartbeatReply();
  };
  RpcServerOptions options = Options();
  options.call_threads = 1;
  options.max_waiting_calls = 1;
  Serve(options);
  v1::HeartbeatRequest request;
  *request.mutable_worker() = Self();
  const auto beat = [&] {
    v1::HeartbeatReply reply;
    return data_->Heartbeat(Context().get(), request, &reply);
  };
  grpc::Status first;
  std::thread blocked([&] { first = beat(); });
  ASSERT_TRUE(Eventually([&] { return inside == 1; }));
  // Of two more, one waits and one is refused, whichever comes first.
  std::atomic<int> rejected{0};
  std::thread second([&] { rejected += ReasonIn(beat()) == "OVER_BUDGET"; });
  std::thread third([&] { rejected += ReasonIn(beat()) == "OVER_BUDGET"; });
  EXPECT_TRUE(Eventually([&] { return rejected == 1; }));
  release.count_down();
  blocked.join();
  second.join();
  third.join();
  EXPECT_TRUE(first.ok());
  EXPECT_EQ(rejected, 1);
}

TEST_F(UnaryTest, StatusAndWorkersAreShown) {
  StatusView& view = coordinator_.status_view;
  view.run_name = "tiny";
  view.state = RunState::kTraining;
  view.fragments.emplace_back().version = Version(4);
  view.fragments[0].missing = {"b", "c"};
  view.rounds.emplace_back().close_reason = "complete";
  view.first_evaluation = EvaluationView{.version = Version(0), .loss = 5.5, .tokens = 10};
  WorkerView& worker = coordinator_.worker_views.emplace_back();
  worker.name = "a";
  worker.role = 1;
  Serve();
  v1::GetStatusReply status;
  ASSERT_TRUE(admin_->GetStatus(Context().get(), v1::GetStatusRequest(), &status).ok());
  EXPECT_EQ(status.run_name(), "tiny");
  EXPECT_EQ(status.state(), v1::RUN_STATE_TRAINING);
  EXPECT_EQ(status.fragments(0).missing(1), "c");
  EXPECT_EQ(status.rounds(0).close_reason(), "complete");
  EXPECT_EQ(status.first_evaluation().loss(), 5.5);
  EXPECT_FALSE(status.software_version().empty());
  v1::ListWorkersReply workers;
  ASSERT_TRUE(admin_->ListWorkers(Context().get(), v1::ListWorkersRequest(), &workers).ok());
  EXPECT_EQ(workers.workers(0).name(), "a");
  EXPECT_EQ(workers.workers(0).role(), v1::ROLE_TRAINER);
}

}  // namespace
}  // namespace atl
