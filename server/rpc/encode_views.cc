#include <string>

#include "atoll/version.h"
#include "protos/wire/heartbeat.h"
#include "protos/wire/join.h"
#include "protos/wire/manifest.h"
#include "protos/wire/run_state.h"
#include "server/rpc/encode.h"

namespace atl {
namespace {

void EncodeFragmentStatus(const FragmentStatusView& view, v1::FragmentStatus* message) {
  message->set_id(view.id.value());
  message->set_version(view.version.value());
  message->set_stored_version(view.stored.value());
  message->set_elements(view.elements);
  *message->mutable_published() = ContentHashToProto(view.published);
  message->set_open_seconds(view.open_seconds);
  message->mutable_arrived()->Assign(view.arrived.begin(), view.arrived.end());
  message->mutable_missing()->Assign(view.missing.begin(), view.missing.end());
  message->set_waiting_for(view.waiting_for);
  message->set_wait_ends_in_s(view.wait_ends_in_s);
}

void EncodeRejectedJoin(const RejectedJoinView& view, v1::RefusedJoin* message) {
  message->set_worker(view.worker);
  message->set_address(view.address);
  message->set_reason(view.reason);
  message->set_message(view.message);
  message->set_since_s(view.since_s);
  message->set_last_s(view.last_s);
  message->set_attempts(view.attempts);
}

void EncodeWaiting(const WaitView& view, v1::Waiting* message) {
  message->set_what(view.what);
  message->mutable_from()->Assign(view.from.begin(), view.from.end());
  message->set_ends_in_s(view.ends_in_s);
  message->set_since_s(view.since_s);
}

void EncodePrivacy(const PrivacyView& view, v1::PrivacyStatus* message) {
  message->set_clip_norm(view.options.clip_norm);
  message->set_noise_multiplier(view.options.noise_multiplier);
  message->set_delta(view.options.delta);
  if (view.epsilon) message->set_epsilon(*view.epsilon);
  if (view.published_epsilon) message->set_published_epsilon(*view.published_epsilon);
}

void EncodeOffences(const OffenceRecord& offences, v1::OffenceStatus* message) {
  message->set_recent(offences.recent());
  message->set_rounds(offences.rounds());
  message->set_kinds(OffenceNames(offences.kinds()));
  message->set_not_finite(offences.total(Offence::kNotFinite));
  message->set_norm(offences.total(Offence::kNorm));
  message->set_distance(offences.total(Offence::kDistance));
  message->set_direction(offences.total(Offence::kDirection));
  message->set_replayed(offences.total(Offence::kReplayed));
  const ContributionAudit& last = offences.last();
  message->set_last_norm(last.norm);
  message->set_last_guard(last.guard);
  message->set_last_clip(last.clip);
  message->set_measured(last.measured);
  message->set_last_distance(last.distance);
  message->set_last_cosine(last.cosine);
}

void EncodeHistory(const StatusView& view, v1::GetStatusReply* reply) {
  for (const RoundSummaryView& round : view.rounds) EncodeRound(round, reply->add_rounds());
  for (const EvaluationView& evaluation : view.evaluations) {
    EncodeEvaluation(evaluation, reply->add_evaluations());
  }
  if (view.first_evaluation) EncodeEvaluation(*view.first_evaluation, reply->mutable_first_evaluation());
}

}  // namespace

void EncodeEvaluation(const EvaluationView& evaluation, v1::EvaluationReport* message) {
  message->set_version(evaluation.version.value());
  message->set_loss(evaluation.loss);
  message->set_tokens(evaluation.tokens);
  for (const TaskScore& score : evaluation.tasks) *message->add_tasks() = TaskScoreToProto(score);
}

void EncodeRound(const RoundSummaryView& round, v1::RoundSummary* message) {
  message->set_fragment(round.fragment.value());
  message->set_version(round.version.value());
  message->set_contributions(round.contributions);
  message->set_train_loss(round.train_loss);
  message->set_tokens(round.tokens);
  message->set_committed_tokens(round.committed_tokens);
  message->set_open_seconds(round.open_seconds);
  message->set_commit_seconds(round.commit_seconds);
  message->set_payload_bytes(round.payload_bytes);
  message->set_close_reason(round.close_reason);
  message->set_closed_unix_nanos(round.closed_unix_ns);
  message->set_epsilon(round.epsilon);
}

void EncodeEvent(const EventView& event, v1::RunEvent* message) {
  message->set_sequence(event.sequence);
  message->set_unix_nanos(event.unix_ns);
  message->set_kind(static_cast<v1::RunEvent::Kind>(event.kind));
  message->set_message(event.message);
  message->set_worker(event.worker);
  message->set_fragment(event.fragment.value());
  message->set_version(event.version.value());
  message->set_trace_id(event.trace_id);
  if (event.round) EncodeRound(*event.round, message->mutable_round());
  if (event.evaluation) EncodeEvaluation(*event.evaluation, message->mutable_evaluation());
}

absl::Status EncodeStatus(const StatusView& view, v1::GetStatusReply* reply) {
  reply->set_run_id(view.run_id);
  reply->set_run_name(view.run_name);
  reply->set_epoch(view.epoch.value());
  reply->set_state(RunStateToProto(view.state));
  reply->set_state_reason(view.state_reason);
  reply->set_uptime_s(view.uptime_s);
  reply->set_software_version(std::string(kVersion));
  if (!reply->mutable_config()->ParseFromString(view.config_bytes)) {
    return absl::InternalError("the recorded run configuration is not a RunConfig");
  }
  reply->set_config_version(view.config_version);
  reply->set_parameters(view.parameters);
  reply->set_tensors(view.tensors);
  for (const FragmentStatusView& fragment : view.fragments) {
    EncodeFragmentStatus(fragment, reply->add_fragments());
  }
  reply->set_committed_tokens(view.committed_tokens);
  reply->set_total_tokens(view.total_tokens);
  reply->set_position_steps(view.position_steps);
  reply->set_total_steps(view.total_steps);
  reply->set_learning_rate(view.learning_rate);
  reply->set_tokens_per_second(view.tokens_per_second);
  reply->set_eta_seconds(view.eta_seconds);
  reply->mutable_traffic()->set_push_bytes(view.push_bytes);
  reply->mutable_traffic()->set_pull_bytes(view.pull_bytes);
  reply->mutable_traffic()->set_data_parallel_bytes(view.data_parallel_bytes);
  EncodeHistory(view, reply);
  reply->set_data_directory(view.data_directory);
  reply->set_storage_error(view.storage_error);
  reply->set_live_trainers(view.live_trainers);
  for (const WaitView& wait : view.waiting) EncodeWaiting(wait, reply->add_waiting());
  reply->set_last_event_sequence(view.last_event_sequence);
  reply->set_run_seconds(view.run_seconds);
  reply->set_compute_utilisation(view.compute_utilisation);
  if (view.privacy) EncodePrivacy(*view.privacy, reply->mutable_privacy());
  for (const RejectedJoinView& rejected : view.refused_joins) {
    EncodeRejectedJoin(rejected, reply->add_refused_joins());
  }
  reply->set_joins_refused(view.joins_refused);
  return absl::OkStatus();
}

void EncodeWorker(const WorkerView& view, v1::WorkerStatus* message) {
  message->set_name(view.name);
  message->set_incarnation(view.incarnation.value());
  message->set_role(static_cast<v1::Role>(view.role));
  message->set_state(view.state);
  message->set_lease_remaining_s(view.lease_remaining_s);
  *message->mutable_capabilities() = DeviceToProto(view.device);
  if (view.data) *message->mutable_data() = DataPartToProto(*view.data);
  *message->mutable_progress() = ProgressToProto(view.progress);
  message->set_seconds_since_heartbeat(view.seconds_since_heartbeat);
  message->set_contributions_accepted(view.contributions_accepted);
  message->set_contributions_refused(view.contributions_refused);
  message->set_push_bytes(view.push_bytes);
  message->set_pull_bytes(view.pull_bytes);
  message->set_banned(view.banned);
  message->set_pending_command(WorkerCommandToProto(view.pending_command));
  message->set_inner_steps(view.inner_steps);
  message->set_steps_per_second(view.steps_per_second);
  if (view.confirmed) message->set_confirmed_version(view.confirmed->value());
  if (view.offences.any() || view.offences.last().norm > 0) {
    EncodeOffences(view.offences, message->mutable_offences());
  }
}

}  // namespace atl
