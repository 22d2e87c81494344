#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "protos/wire/confirmation.h"
#include "protos/wire/field_check.h"
#include "protos/wire/heartbeat.h"
#include "protos/wire/join.h"
#include "protos/wire/protocol.h"
#include "protos/wire/pull.h"
#include "protos/wire/push.h"
#include "protos/wire/run_state.h"

// Every call and reply through its message and back.

namespace atl {
namespace {

using ::testing::HasSubstr;

MemberRef Member() {
  return {.run_id = "run-1", .epoch = Epoch(7), .worker = "w", .incarnation = Incarnation(3)};
}

JoinCall Join() {
  return {
      .worker = "w",
      .secret = std::string(16, 's'),
      .public_key = std::string(32, 'k'),
      .role = WorkerRole::kEvaluator,
      .manifest_hash = "abc",
      .device = {.software_version = "1.2",
                 .device = "cuda:0",
                 .device_name = "an accelerator",
                 .threads = 8,
                 .memory_bytes = 1 << 20,
                 .device_memory_bytes = 1 << 21},
      .dataset =
          DatasetSummary{.tokenizer = "bytes", .vocabulary = 256, .train_tokens = 1000, .fingerprint = "f"},
      .expected_run = "run-1"};
}

TEST(WireCalls, AJoinKeepsEveryField) {
  const auto call = JoinCallFromProto(JoinCallToProto(Join()));
  ASSERT_TRUE(call.ok()) << call.status();
  EXPECT_EQ(call->worker, "w");
  EXPECT_EQ(call->secret, std::string(16, 's'));
  EXPECT_EQ(call->public_key, std::string(32, 'k'));
  EXPECT_EQ(call->role, WorkerRole::kEvaluator);
  EXPECT_EQ(call->manifest_hash, "abc");
  EXPECT_EQ(call->device.software_version, "1.2");
  EXPECT_EQ(call->device.device, "cuda:0");
  EXPECT_EQ(call->device.device_name, "an accelerator");
  EXPECT_EQ(call->device.threads, 8u);
  EXPECT_EQ(call->device.memory_bytes, 1u << 20);
  EXPECT_EQ(call->device.device_memory_bytes, 1u << 21);
  EXPECT_EQ(call->dataset->tokenizer, "bytes");
  EXPECT_EQ(call->dataset->vocabulary, 256u);
  EXPECT_EQ(call->dataset->train_tokens, 1000u);
  EXPECT_EQ(call->dataset->fingerprint, "f");
  EXPECT_EQ(call->expected_run, "run-1");
}

TEST(WireCalls, AManifestSaysItsHash) {
  JoinCall join = Join();
  join.manifest = Manifest{{{.name = "t", .shape = {2, 3}}}, "0123456789abcdef"};
  join.manifest_hash.clear();
  v1::JoinRequest request = JoinCallToProto(join);
  const auto call = JoinCallFromProto(request);
  ASSERT_TRUE(call.ok()) << call.status();
  EXPECT_EQ(call->manifest, join.manifest);
  EXPECT_EQ(call->manifest_hash, ManifestHash(*join.manifest));
  EXPECT_TRUE(call->BecomesMember());
  request.set_manifest_hash(call->manifest_hash);
  EXPECT_TRUE(JoinCallFromProto(request).ok());
  request.set_manifest_hash("abc");
  EXPECT_THAT(std::string(JoinCallFromProto(request).status().message()), HasSubstr("manifest_hash: is abc"));
  request.mutable_manifest()->mutable_tensors(0)->set_shape(0, -2);
  EXPECT_THAT(std::string(JoinCallFromProto(request).status().message()), HasSubstr("dimension of -2"));
}

TEST(WireCalls, AFingerprintOfNoneIsNone) {
  JoinCall join = Join();
  join.dataset->fingerprint = "none";
  EXPECT_EQ(JoinCallFromProto(JoinCallToProto(join))->dataset->fingerprint, "");
}

TEST(WireCalls, AJoinBeyondItsBoundsIsRejected) {
  const auto rejected = [](auto change) {
    JoinCall call = Join();
    change(call);
    return JoinCallFromProto(JoinCallToProto(call)).status();
  };
  const std::string long_text(kMaxTextBytes + 1, 'x');
  const absl::Status secret = rejected([](JoinCall& call) { call.secret = "short"; });
  EXPECT_THAT(std::string(secret.message()), HasSubstr("secret: has 5 bytes"));
  EXPECT_FALSE(rejected([](JoinCall& call) { call.worker = "no spaces"; }).ok());
  EXPECT_FALSE(rejected([](JoinCall& call) { call.public_key = "k"; }).ok());
  EXPECT_FALSE(rejected([&](JoinCall& call) { call.expected_run = long_text; }).ok());
  EXPECT_FALSE(rejected([&](JoinCall& call) { call.device.device_name = long_text; }).ok());
  EXPECT_FALSE(rejected([&](JoinCall& call) { call.dataset->fingerprint = long_text; }).ok());
  v1::JoinRequest request = JoinCallToProto(Join());
  request.set_role(v1::ROLE_UNSPECIFIED);
  EXPECT_TRUE(absl::IsInvalidArgument(JoinCallFromProto(request).status()));
}

JoinReply Joined() {
  JoinReply reply;
  reply.member = Member();
  reply.lease = Seconds(15);
  reply.heartbeat = Seconds(5);
  reply.config_version = 4;
  reply.manifest_hash = "abc";
  reply.data = DataPart{.partition = 2, .partitions = 4, .samples_consumed = 99};
  reply.fragments = {{.id = FragmentId(0), .version = Version(12), .elements = 512, .endpoint = "other:1"}};
  reply.state = RunState::kTraining;
  reply.seed_granted = true;
  reply.returning = true;
  reply.accepted = {{.fragment = FragmentId(1), .base = Version(12), .sequence = 3}};
  reply.committed_tokens = 5;
  reply.total_tokens = 6;
  reply.manifest = Manifest{{{.name = "t", .shape = {2, 3}, .embedding = true},
                             {.name = "running_mean", .shape = {3}, .averaged = true}}};
  reply.last_event_sequence = 8;
  return reply;
}

v1::JoinReply Encoded(const JoinReply& reply) {
  v1::JoinReply message;
  EXPECT_TRUE(JoinReplyToProto(reply, &message).ok());
  return message;
}

TEST(WireCalls, TheReplyToAJoinKeepsEveryField) {
  const auto reply = JoinReplyFromProto(Encoded(Joined()), Join());
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->member, Member());
  EXPECT_EQ(reply->lease, Seconds(15));
  EXPECT_EQ(reply->heartbeat, Seconds(5));
  EXPECT_EQ(reply->config_version, 4u);
  EXPECT_EQ(reply->manifest_hash, "abc");
  EXPECT_EQ(reply->data, Joined().data);
  ASSERT_EQ(reply->fragments.size(), 1u);
  EXPECT_EQ(reply->fragments[0].version, Version(12));
  EXPECT_EQ(reply->fragments[0].elements, 512u);
  EXPECT_EQ(reply->fragments[0].endpoint, "other:1");
  EXPECT_EQ(reply->state, RunState::kTraining);
  EXPECT_TRUE(reply->seed_granted);
  EXPECT_TRUE(reply->returning);
  EXPECT_EQ(reply->accepted, Joined().accepted);
  EXPECT_EQ(reply->committed_tokens, 5u);
  EXPECT_EQ(reply->total_tokens, 6u);
  EXPECT_EQ(reply->manifest, Joined().manifest);
  EXPECT_EQ(reply->last_event_sequence, 8u);
}

TEST(WireCalls, AReplyThatMakesNoSenseIsRejected) {
  const auto rejected = [](auto damage) {
    v1::JoinReply message = Encoded(Joined());
    damage(message);
    return absl::IsInvalidArgument(JoinReplyFromProto(message, Join()).status());
  };
  EXPECT_TRUE(rejected([](v1::JoinReply& reply) { reply.clear_run_id(); }));
  EXPECT_TRUE(rejected([](v1::JoinReply& reply) { reply.clear_incarnation(); }));
  EXPECT_TRUE(rejected([](v1::JoinReply& reply) { reply.clear_fragments(); }));
  EXPECT_TRUE(rejected([](v1::JoinReply& reply) { reply.mutable_data()->set_partition(4); }));
  EXPECT_TRUE(rejected(
      [](v1::JoinReply& reply) { reply.set_heartbeat_s(std::numeric_limits<double>::quiet_NaN()); }));
}

TEST(WireCalls, AConfigurationThatIsNoneIsNotSent) {
  JoinReply reply = Joined();
  reply.config_bytes = "\xff";
  v1::JoinReply message;
  EXPECT_TRUE(absl::IsInternal(JoinReplyToProto(reply, &message)));
}

HeartbeatCall Beat() {
  HeartbeatCall call;
  call.progress.phase = WorkerPhase::kWaiting;
  call.progress.base = Version(4);
  call.progress.step = 3;
  call.progress.steps = 10;
  call.progress.loss = 2.5;
  call.progress.gradient_norm = 0.5;
  call.progress.learning_rate = 0.125;
  call.progress.tokens_per_second = 100;
  call.progress.memory_bytes = 77;
  call.progress.training[TimeUse::kCompute] = 8;
  call.progress.exchanges[TimeUse::kPush] = 2;
  call.progress.waiting_for = "the others";
  call.evaluations = {{.version = Version(4), .loss = 1.5, .tokens = 100}};
  call.confirmations = {
      {.fragment = FragmentId(1), .version = Version(3), .published = {5, 6}, .signature = "signed"}};
  call.device = Join().device;
  return call;
}

TEST(WireCalls, AHeartbeatKeepsEveryField) {
  const v1::HeartbeatRequest request = HeartbeatCallToProto(Member(), Beat());
  EXPECT_EQ(MemberRefFromProto(request.worker()).value(), Member());
  const auto call = HeartbeatCallFromProto(request);
  ASSERT_TRUE(call.ok()) << call.status();
  EXPECT_EQ(call->progress.phase, WorkerPhase::kWaiting);
  EXPECT_EQ(call->progress.base, Version(4));
  EXPECT_EQ(call->progress.step, 3u);
  EXPECT_EQ(call->progress.steps, 10u);
  EXPECT_EQ(call->progress.loss, 2.5);
  EXPECT_EQ(call->progress.gradient_norm, 0.5);
  EXPECT_EQ(call->progress.learning_rate, 0.125);
  EXPECT_EQ(call->progress.tokens_per_second, 100);
  EXPECT_EQ(call->progress.memory_bytes, 77u);
  EXPECT_EQ(call->progress.training[TimeUse::kCompute], 8);
  EXPECT_EQ(call->progress.exchanges[TimeUse::kPush], 2);
  EXPECT_EQ(call->progress.waiting_for, "the others");
  EXPECT_EQ(call->evaluations, Beat().evaluations);
  ASSERT_EQ(call->confirmations.size(), 1u);
  EXPECT_EQ(call->confirmations[0].fragment, FragmentId(1));
  EXPECT_EQ(call->confirmations[0].version, Version(3));
  EXPECT_EQ(call->confirmations[0].published, (ContentHash{5, 6}));
  EXPECT_EQ(call->confirmations[0].signature, "signed");
  EXPECT_EQ(call->device->device_name, "an accelerator");
}

TEST(WireCalls, AbsurdFiguresOfAWorkerCountAsNotKnown) {
  HeartbeatCall absurd = Beat();
  absurd.progress.loss = std::numeric_limits<double>::infinity();
  absurd.progress.tokens_per_second = -1;
  absurd.progress.training[TimeUse::kCompute] = 1e300;
  const auto call = HeartbeatCallFromProto(HeartbeatCallToProto(Member(), absurd));
  ASSERT_TRUE(call.ok()) << call.status();
  EXPECT_EQ(call->progress.loss, 0);
  EXPECT_EQ(call->progress.tokens_per_second, 0);
  EXPECT_EQ(call->progress.training[TimeUse::kCompute], 0);
  absurd.progress.loss = -2.5;
  EXPECT_EQ(HeartbeatCallFromProto(HeartbeatCallToProto(Member(), absurd))->progress.loss, -2.5)
      << "as an external model may have it";
  absurd.progress.loss = -1e31;
  EXPECT_EQ(HeartbeatCallFromProto(HeartbeatCallToProto(Member(), absurd))->progress.loss, 0);
}

TEST(WireCalls, EveryStateAndCommandIsUnderstood) {
  for (int state = 0; state <= static_cast<int>(RunState::kStopped); ++state) {
    for (int command = 1; command <= static_cast<int>(WorkerCommand::kResync); ++command) {
      const HeartbeatReply sent{.lease = Seconds(15),
                                .state = static_cast<RunState>(state),
                                .fragments = Joined().fragments,
                                .seed_granted = true,
                                .command = static_cast<WorkerCommand>(command),
                                .at_once = true};
      const HeartbeatReply reply = HeartbeatReplyFromProto(HeartbeatReplyToProto(sent));
      EXPECT_EQ(reply.lease, Seconds(15));
      EXPECT_EQ(reply.state, sent.state);
      EXPECT_EQ(reply.fragments[0].version, Version(12));
      EXPECT_TRUE(reply.seed_granted && reply.at_once);
      EXPECT_EQ(reply.command, sent.command);
    }
  }
  EXPECT_EQ(RunStateFromProto(static_cast<v1::RunState>(99)), RunState::kUnknown);
  EXPECT_EQ(WorkerCommandFromProto(static_cast<v1::Command>(99)), WorkerCommand::kNone);
  EXPECT_EQ(WorkerCommandToProto(static_cast<WorkerCommand>(99)), v1::COMMAND_UNSPECIFIED);
}

TEST(WireCalls, APushKeepsEveryField) {
  const PushHeader sent{.key = {.fragment = FragmentId(1), .base = Version(12), .sequence = 3},
                        .codec = CodecKind::kInt8,
                        .payload_bytes = 4,
                        .payload_crc32c = 5,
                        .tokens = 6,
                        .steps = 7,
                        .partition = 8,
                        .samples_consumed = 9,
                        .mean_loss = 1.5};
  const v1::PushHeader message = PushHeaderToProto(Member(), sent);
  EXPECT_EQ(MemberRefFromProto(message.worker()).value(), Member());
  EXPECT_EQ(PushHeaderFromProto(message).value(), sent);
  EXPECT_EQ(PushKeyFromProto(PushStatusCallToProto(Member(), sent.key).push()), sent.key);
  const PushReply reply = PushReplyFromProto(
      PushReplyToProto({.duplicate = true, .head = Version(13), .arrived = 1, .expected = 2}));
  EXPECT_TRUE(reply.duplicate);
  EXPECT_EQ(reply.head, Version(13));
  EXPECT_EQ(reply.arrived, 1u);
  EXPECT_EQ(reply.expected, 2u);
  for (const PushStage stage : {PushStage::kUnknown, PushStage::kPartial, PushStage::kAccepted,
                                PushStage::kCommitted, PushStage::kMissed}) {
    const PushStatusReply status = PushStatusReplyFromProto(
        PushStatusReplyToProto({.stage = stage, .received_bytes = 10, .head = Version(13)}));
    EXPECT_EQ(status.stage, stage);
    EXPECT_EQ(status.received_bytes, 10u);
    EXPECT_EQ(status.head, Version(13));
  }
}

TEST(WireCalls, APullKeepsEveryField) {
  const PullCall sent{
      .fragment = FragmentId(1), .after = Version(0), .wait = Seconds(30), .have = Version(5), .zstd = true};
  v1::PullRequest request = PullCallToProto(Member(), sent);
  const auto call = PullCallFromProto(request);
  ASSERT_TRUE(call.ok()) << call.status();
  EXPECT_EQ(call->fragment, FragmentId(1));
  EXPECT_EQ(call->after, Version(0));
  EXPECT_EQ(call->wait, Seconds(30));
  EXPECT_EQ(call->have, Version(5));
  EXPECT_TRUE(call->zstd);
  EXPECT_EQ(PullPartFromProto(request).value(), std::nullopt);
  *request.mutable_range() = PullPartToProto({.version = Version(6),
                                              .delta_base = Version(5),
                                              .first_byte = kWireChunkBytes,
                                              .end_byte = 2 * kWireChunkBytes});
  const auto part = PullPartFromProto(request).value();
  ASSERT_TRUE(part.has_value());
  EXPECT_EQ(part->version, Version(6));
  EXPECT_EQ(part->delta_base, Version(5));
  EXPECT_EQ(part->first_byte, kWireChunkBytes);
  EXPECT_EQ(part->end_byte, 2 * kWireChunkBytes);
  request.mutable_range()->set_first_byte(1);
  EXPECT_TRUE(absl::IsInvalidArgument(PullPartFromProto(request).status()));
}

TEST(WireCalls, APullThatWaitsTooLongIsShortenedOrRejected) {
  v1::PullRequest request = PullCallToProto(Member(), {.wait = Seconds(90)});
  EXPECT_EQ(request.wait_ms(), kMaxPullWaitMs);
  request.set_wait_ms(kMaxPullWaitMs + 1);
  EXPECT_TRUE(absl::IsInvalidArgument(PullCallFromProto(request).status()));
}

PullReply Pulled() {
  PullReply reply{.outcome = PullOutcome::kParameters, .state = RunState::kDegraded};
  reply.epoch = Epoch(7);
  reply.version = reply.head = Version(6);
  reply.codec = CodecKind::kInt8;
  reply.elements = 4;
  reply.payload_bytes = 8;
  reply.published = {1, 2};
  reply.plan = {.inner_steps = 10,
                .active_workers = 3,
                .committed_tokens = 4,
                .total_tokens = 5,
                .evaluate = true,
                .deadline = Seconds(600),
                .data = DataPart{.partition = 1, .partitions = 2, .samples_consumed = 3},
                .config_version = 9};
  reply.first_byte = 0;
  reply.end_byte = 8;
  return reply;
}

TEST(WireCalls, TheReplyToAPullKeepsEveryField) {
  const auto reply = PullReplyFromProto(PullReplyToProto(Pulled()));
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->outcome, PullOutcome::kParameters);
  EXPECT_EQ(reply->state, RunState::kDegraded);
  EXPECT_EQ(reply->epoch, Epoch(7));
  EXPECT_EQ(reply->version, Version(6));
  EXPECT_EQ(reply->head, Version(6));
  EXPECT_EQ(reply->codec, CodecKind::kInt8);
  EXPECT_EQ(reply->elements, 4u);
  EXPECT_EQ(reply->payload_bytes, 8u);
  EXPECT_EQ(reply->published, (ContentHash{1, 2}));
  EXPECT_EQ(reply->plan.inner_steps, 10u);
  EXPECT_EQ(reply->plan.active_workers, 3u);
  EXPECT_EQ(reply->plan.committed_tokens, 4u);
  EXPECT_EQ(reply->plan.total_tokens, 5u);
  EXPECT_TRUE(reply->plan.evaluate);
  EXPECT_EQ(reply->plan.deadline, Seconds(600));
  EXPECT_EQ(reply->plan.data, Pulled().plan.data);
  EXPECT_EQ(reply->plan.config_version, 9u);
  EXPECT_EQ(reply->end_byte, 8u);
}

TEST(WireCalls, ADifferenceBelowTheHeadHasNoPlan) {
  PullReply sent = Pulled();
  sent.delta_base = Version(5);
  sent.head = Version(7);
  const v1::PullHeader header = PullReplyToProto(sent);
  EXPECT_FALSE(header.has_plan());
  const auto reply = PullReplyFromProto(header);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->delta_base, Version(5));
  EXPECT_EQ(reply->head, Version(7));
}

TEST(WireCalls, AWaitThatRanOutSaysWhatItWaitedFor) {
  const PullReply sent{.outcome = PullOutcome::kNotYet, .state = RunState::kPaused, .waiting_for = "ann"};
  const auto reply = PullReplyFromProto(PullReplyToProto(sent));
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->outcome, PullOutcome::kNotYet);
  EXPECT_EQ(reply->state, RunState::kPaused);
  EXPECT_EQ(reply->waiting_for, "ann");
  EXPECT_FALSE(PullReplyFromProto(v1::PullHeader()).ok()) << "no outcome";
}

TEST(WireCalls, AQueryOfConfirmationsKeepsEveryField) {
  const ConfirmationQuery query = ConfirmationQueryFromProto(ConfirmationQueryToProto(
      Member(), {.fragment = FragmentId(1),
                 .first = Version(2),
                 .last = Version(3),
                 .after = ConfirmationQuery::Cursor{.version = Version(2), .worker = "v"},
                 .limit = 4}));
  EXPECT_EQ(query.fragment, FragmentId(1));
  EXPECT_EQ(query.first, Version(2));
  EXPECT_EQ(query.last, Version(3));
  EXPECT_EQ(query.after->version, Version(2));
  EXPECT_EQ(query.after->worker, "v");
  EXPECT_EQ(query.limit, 4u);
  const ConfirmationPage page = ConfirmationPageFromProto(ConfirmationPageToProto(
      {.run_id = "run-1",
       .confirmations = {{.worker = "w", .public_key = "k", .epoch = Epoch(7), .confirmation = {}}},
       .next = ConfirmationQuery::Cursor{.version = Version(3), .worker = "w"}}));
  EXPECT_EQ(page.run_id, "run-1");
  ASSERT_EQ(page.confirmations.size(), 1u);
  EXPECT_EQ(page.confirmations[0].epoch, Epoch(7));
  EXPECT_EQ(page.next->worker, "w");
}

TEST(WireCalls, ACallAfterJoinNamesItsWorker) {
  EXPECT_TRUE(absl::IsInvalidArgument(MemberRefFromProto(v1::WorkerRef()).status()));
  MemberRef long_name = Member();
  long_name.worker.assign(kMaxWorkerName + 1, 'x');
  EXPECT_TRUE(absl::IsInvalidArgument(MemberRefFromProto(MemberRefToProto(long_name)).status()));
}

}  // namespace
}  // namespace atl
