#include "protos/wire/codec.h"
#include "protos/wire/confirmation.h"
#include "protos/wire/manifest.h"
#include "protos/wire/protocol.h"
#include "server/rpc/encode.h"

namespace atl {
namespace {

v1::GetPushStatusReply::State EncodePushState(PushState state) {
  switch (state) {
    case PushState::kPartial:
      return v1::GetPushStatusReply::PARTIAL;
    case PushState::kAccepted:
      return v1::GetPushStatusReply::ACCEPTED;
    case PushState::kCommitted:
      return v1::GetPushStatusReply::COMMITTED;
    case PushState::kMissed:
      return v1::GetPushStatusReply::MISSED;
    case PushState::kUnknown:
      break;
  }
  return v1::GetPushStatusReply::UNKNOWN;
}

v1::PullHeader::Outcome EncodeOutcome(PullOutcome outcome) {
  switch (outcome) {
    case PullOutcome::kParameters:
      return v1::PullHeader::PARAMETERS;
    case PullOutcome::kRunFinished:
      return v1::PullHeader::RUN_FINISHED;
    case PullOutcome::kNotYet:
      break;
  }
  return v1::PullHeader::NOT_YET;
}

void EncodePlan(const RoundPlanView& plan, v1::RoundPlan* message) {
  message->set_inner_steps(plan.inner_steps);
  message->set_active_workers(plan.active_workers);
  message->set_committed_tokens(plan.committed_tokens);
  message->set_total_tokens(plan.total_tokens);
  message->set_evaluate(plan.evaluate);
  message->set_deadline_s(ToSeconds(plan.deadline));
  message->set_config_version(plan.config_version);
  if (plan.data) EncodePartition(*plan.data, message->mutable_data());
}

}  // namespace

absl::Status EncodeJoin(const JoinResult& result, v1::JoinReply* reply) {
  *reply->mutable_protocol() = OurProtocolVersion();
  reply->set_run_id(result.run_id);
  reply->set_epoch(result.epoch.value());
  reply->set_incarnation(result.incarnation.value());
  reply->set_lease_s(ToSeconds(result.lease));
  reply->set_heartbeat_s(ToSeconds(result.heartbeat));
  if (!reply->mutable_config()->ParseFromString(result.config_bytes)) {
    return absl::InternalError("the recorded run configuration is not a RunConfig");
  }
  reply->set_config_version(result.config_version);
  reply->set_manifest_hash(result.manifest_hash);
  if (result.manifest) *reply->mutable_manifest() = ManifestToProto(*result.manifest);
  if (result.data) EncodePartition(*result.data, reply->mutable_data());
  EncodeFragments(result.fragments, reply->mutable_fragments());
  reply->set_state(static_cast<v1::RunState>(result.state));
  reply->set_seed_granted(result.seed_granted);
  reply->set_returning(result.returning);
  for (const ContributionKey& key : result.accepted) {
    v1::PushRef* ref = reply->add_accepted();
    ref->set_fragment(key.fragment.value());
    ref->set_base_version(key.base.value());
    ref->set_sequence(key.sequence);
  }
  reply->set_committed_tokens(result.committed_tokens);
  reply->set_total_tokens(result.total_tokens);
  reply->set_last_event_sequence(result.last_event_sequence);
  return absl::OkStatus();
}

v1::Command EncodeCommand(CommandView command) {
  switch (command) {
    case CommandView::kNone:
      return v1::COMMAND_NONE;
    case CommandView::kDrain:
      return v1::COMMAND_DRAIN;
    case CommandView::kRestart:
      return v1::COMMAND_RESTART;
    case CommandView::kStop:
      return v1::COMMAND_STOP;
    case CommandView::kResync:
      return v1::COMMAND_RESYNC;
  }
  return v1::COMMAND_UNSPECIFIED;
}

void EncodeHeartbeat(const HeartbeatResult& result, v1::HeartbeatReply* reply) {
  reply->set_lease_s(ToSeconds(result.lease));
  reply->set_state(static_cast<v1::RunState>(result.state));
  EncodeFragments(result.fragments, reply->mutable_fragments());
  reply->set_seed_granted(result.seed_granted);
  reply->set_command(EncodeCommand(result.command));
  reply->set_at_once(result.at_once);
}

void EncodeSeed(const SeedResult& result, v1::SeedReply* reply) {
  EncodeFragments(result.fragments, reply->mutable_fragments());
  for (const ContentHash& hash : result.published) *reply->add_published() = ContentHashToProto(hash);
}

void EncodePush(const PushResult& result, v1::PushReply* reply) {
  reply->set_duplicate(result.duplicate);
  reply->set_head_version(result.head.value());
  reply->set_arrived(result.arrived);
  reply->set_expected(result.expected);
}

void EncodeConfirmations(const ConfirmationPage& page, v1::ConfirmationPage* reply) {
  reply->set_run_id(page.run_id);
  for (const SignedConfirmation& one : page.confirmations) {
    *reply->add_confirmations() = SignedConfirmationToProto(one);
  }
  if (!page.next.has_value()) return;
  reply->mutable_next()->set_version(page.next->version.value());
  reply->mutable_next()->set_worker(page.next->worker);
}

void EncodePushStatus(const PushStatusResult& result, v1::GetPushStatusReply* reply) {
  reply->set_state(EncodePushState(result.state));
  reply->set_received_bytes(result.received_bytes);
  reply->set_head_version(result.head.value());
}

void EncodePullHeader(const PullResult& result, v1::PullHeader* header) {
  header->set_outcome(EncodeOutcome(result.outcome));
  header->set_state(static_cast<v1::RunState>(result.state));
  header->set_waiting_for(result.waiting_for);
  if (result.outcome != PullOutcome::kParameters) return;
  const Snapshot& snapshot = *result.snapshot;
  header->set_epoch(snapshot.epoch.value());
  header->set_version(snapshot.version.value());
  header->set_codec(CodecToProto(snapshot.codec));
  header->set_elements(snapshot.elements);
  header->set_payload_bytes(snapshot.payload.size());
  *header->mutable_published() = ContentHashToProto(snapshot.published);
  if (result.delta != nullptr) {
    const PublishedDelta& delta = *result.delta;
    header->set_version(delta.to.value());
    header->set_codec(CodecToProto(delta.codec));
    header->set_payload_bytes(delta.payload.size());
    *header->mutable_published() = ContentHashToProto(delta.published);
    header->set_delta_base(delta.from.value());
    header->set_head_version(snapshot.version.value());
    if (delta.to != snapshot.version) return;
  }
  EncodePlan(result.plan, header->mutable_plan());
}

}  // namespace atl
