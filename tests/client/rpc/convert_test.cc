#include "client/rpc/convert.h"

#include <limits>

#include "client/sync/rejection.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "protos/config/run_config.h"
#include "protos/wire/protocol.h"

namespace atl {
namespace {

using ::testing::HasSubstr;

constexpr char kYaml[] =
    "run: {name: r, workers: 1, rounds: 2}\n"
    "model: {gpt: {layers: 1, heads: 1, width: 8, context: 8, vocabulary: 256}}\n"
    "data: {tokenizer: bytes}\n"
    "inner: {steps: 4, learning_rate: 0.1, batch: 3}\n";

const JoinCall kMember{.worker = "w", .secret = "s", .manifest_hash = "abc"};

v1::JoinReply GoodReply() {
  v1::JoinReply reply;
  *reply.mutable_protocol() = OurProtocolVersion();
  reply.set_run_id("run-1");
  reply.set_epoch(7);
  reply.set_incarnation(3);
  reply.set_lease_s(15);
  reply.set_heartbeat_s(5);
  *reply.mutable_config() = ParseRunConfig(kYaml, "test").value();
  return reply;
}

TEST(JoinedRunFromProtoTest, EveryField) {
  v1::JoinReply reply = GoodReply();
  reply.set_manifest_hash("abc");
  reply.mutable_data()->set_partition(2);
  reply.mutable_data()->set_partitions(4);
  reply.mutable_data()->set_samples_consumed(99);
  v1::FragmentInfo& fragment = *reply.add_fragments();
  fragment.set_version(12);
  fragment.set_elements(512);
  fragment.set_endpoint("other:1");
  reply.set_state(v1::RUN_STATE_TRAINING);
  reply.set_returning(true);
  reply.add_accepted()->set_base_version(12);
  const auto info = JoinedRunFromProto(reply, kMember);
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->member, (MemberRef{"run-1", Epoch(7), "w", Incarnation(3)}));
  EXPECT_EQ(info->heartbeat, Seconds(5));
  EXPECT_EQ(info->run.inner.steps, 4u);
  EXPECT_EQ(info->data, (DataPart{2, 4, 99}));
  ASSERT_EQ(info->fragments.size(), 1u);
  EXPECT_EQ(info->fragments[0].version, Version(12));
  EXPECT_EQ(info->fragments[0].endpoint, "other:1");
  EXPECT_EQ(info->state, RunState::kTraining);
  EXPECT_TRUE(info->returning);
  EXPECT_EQ(info->accepted, (std::vector<PushKey>{{FragmentId(0), Version(12), 0}}));
}

TEST(JoinedRunFromProtoTest, AnotherProtocolNamesBothVersions) {
  v1::JoinReply reply = GoodReply();
  reply.mutable_protocol()->set_major(kProtocolMajor + 1);
  const auto info = JoinedRunFromProto(reply, kMember);
  EXPECT_EQ(RejectionReasonOf(info.status()), RejectionReason::kProtocolMismatch);
  EXPECT_THAT(std::string(info.status().message()), HasSubstr(std::to_string(kProtocolMajor + 1)));
}

TEST(JoinedRunFromProtoTest, NonsenseIsRejected) {
  const auto rejected = [](void (*damage)(v1::JoinReply&)) {
    v1::JoinReply reply = GoodReply();
    damage(reply);
    return JoinedRunFromProto(reply, kMember).status().code() == absl::StatusCode::kInvalidArgument;
  };
  EXPECT_TRUE(rejected([](v1::JoinReply& reply) { reply.clear_run_id(); }));
  EXPECT_TRUE(rejected([](v1::JoinReply& reply) { reply.clear_incarnation(); }));
  EXPECT_TRUE(rejected(
      [](v1::JoinReply& reply) { reply.set_heartbeat_s(std::numeric_limits<double>::quiet_NaN()); }));
  EXPECT_TRUE(rejected([](v1::JoinReply& reply) { reply.clear_config(); }));
  EXPECT_TRUE(
      rejected([](v1::JoinReply& reply) { reply.set_manifest_hash("x"); }));  // seeded, but no fragments
}

TEST(JoinedRunFromProtoTest, ADescriptionHasNoIncarnation) {
  v1::JoinReply reply = GoodReply();
  reply.clear_incarnation();
  JoinCall question = kMember;
  question.manifest_hash.clear();
  EXPECT_TRUE(JoinedRunFromProto(reply, question).ok());
}

TEST(PlanFromProtoTest, DataOutsideItsPartitionsMakesNoSense) {
  v1::PullHeader header;
  header.set_outcome(v1::PullHeader::PARAMETERS);
  header.set_codec(v1::CODEC_FP32);
  header.set_elements(4);
  header.set_payload_bytes(16);
  const PullRequest pull_request{.call = {}, .elements = 4};
  ASSERT_TRUE(PulledFromProto(header, pull_request).ok());
  EXPECT_EQ(PulledFromProto(header, pull_request)->plan.data, std::nullopt);
  v1::DataAssignment& data = *header.mutable_plan()->mutable_data();
  data.set_partition(2);
  data.set_partitions(3);
  data.set_samples_consumed(70);
  EXPECT_EQ(PulledFromProto(header, pull_request)->plan.data, (DataPart{2, 3, 70}));
  data.set_partition(3);
  EXPECT_FALSE(PulledFromProto(header, pull_request).ok());
}

TEST(PulledFromProtoTest, ADifferenceIsToWhatIsHeld) {
  v1::PullHeader header;
  header.set_outcome(v1::PullHeader::PARAMETERS);
  header.set_codec(v1::CODEC_INT8);
  header.set_elements(4);
  header.set_payload_bytes(8);
  header.set_version(6);
  header.set_delta_base(5);
  header.set_head_version(7);
  PullRequest pull_request{.call = {}, .elements = 4};
  EXPECT_FALSE(PulledFromProto(header, pull_request).ok()) << "nothing is held";
  pull_request.call.have = Version(5);
  const auto pulled = PulledFromProto(header, pull_request);
  ASSERT_TRUE(pulled.ok()) << pulled.status();
  EXPECT_EQ(pulled->delta_base, Version(5));
  EXPECT_EQ(pulled->head, Version(7));
  EXPECT_EQ(pulled->payload_bytes, 8u);
  const auto with = [&](const auto& change) {
    v1::PullHeader changed = header;
    change(changed);
    return PulledFromProto(changed, pull_request).ok();
  };
  EXPECT_FALSE(with([](v1::PullHeader& h) { h.set_delta_base(4); }));
  EXPECT_FALSE(with([](v1::PullHeader& h) { h.set_version(5); }));
  EXPECT_FALSE(with([](v1::PullHeader& h) { h.set_head_version(5); }));
  EXPECT_FALSE(with([](v1::PullHeader& h) { h.set_codec(v1::CODEC_FP32); }));
  EXPECT_FALSE(with([](v1::PullHeader& h) { h.set_payload_bytes(16); }));
}

TEST(PullRequestTest, TheHeadIsAskedForWithoutAVersion) {
  PullRequest pull_request{.call = {.fragment = FragmentId(1), .wait = Seconds(90)}};
  EXPECT_FALSE(PullRequestToProto({}, pull_request).has_after_version());
  EXPECT_EQ(PullRequestToProto({}, pull_request).wait_ms(), 60000u) << "the bound of the protocol";
  pull_request.call.after = Version(0);
  EXPECT_TRUE(PullRequestToProto({}, pull_request).has_after_version());
}

}  // namespace
}  // namespace atl
