#include "server/rpc/encode_admin.h"

#include "common/crc32c.h"
#include "protos/wire/manifest.h"
#include "server/rpc/encode.h"

namespace atl {
namespace {

const char* StateName(LaunchedWorker::State state) {
  switch (state) {
    case LaunchedWorker::State::kStarting:
      return "starting";
    case LaunchedWorker::State::kRunning:
      return "running";
    case LaunchedWorker::State::kStopping:
      return "stopping";
    case LaunchedWorker::State::kWaiting:
      return "waiting";
    case LaunchedWorker::State::kStopped:
      return "stopped";
    case LaunchedWorker::State::kDraining:
      return "draining";
    case LaunchedWorker::State::kDrained:
      return "drained";
    case LaunchedWorker::State::kAbsent:
      return "absent";
  }
  return "";
}

static_assert(static_cast<int>(VerifyView::Verdict::kEqual) == v1::VerifyProgress::EQUAL &&
              static_cast<int>(VerifyView::Verdict::kDifferent) == v1::VerifyProgress::DIFFERENT &&
              static_cast<int>(VerifyView::Verdict::kNotKept) == v1::VerifyProgress::NOT_KEPT);

}  // namespace

absl::Status EncodeConfig(const ConfigView& view, v1::RecordedConfig* message) {
  message->set_version(view.version);
  if (!message->mutable_config()->ParseFromString(view.bytes)) {
    return absl::InternalError("a recorded run configuration is not a RunConfig");
  }
  message->set_unix_nanos(view.unix_ns);
  message->set_author(view.author);
  message->mutable_changes()->Assign(view.changes.begin(), view.changes.end());
  return absl::OkStatus();
}

absl::Status EncodeParameters(const ParametersView& view, v1::ParametersHeader* message) {
  message->set_run_id(view.run_id);
  message->set_epoch(view.epoch.value());
  if (!message->mutable_config()->ParseFromString(view.config)) {
    return absl::InternalError("a recorded run configuration is not a RunConfig");
  }
  *message->mutable_manifest() = ManifestToProto(view.manifest);
  for (const Version version : view.versions) message->add_versions(version.value());
  message->mutable_outer_state()->Assign(view.outer_state.begin(), view.outer_state.end());
  return absl::OkStatus();
}

void EncodePiece(const ParameterPiece& piece, v1::ParametersChunk* message) {
  message->set_fragment(piece.fragment.value());
  message->set_vector(piece.vector);
  v1::PullChunk& chunk = *message->mutable_chunk();
  chunk.set_offset(piece.first_byte);
  chunk.set_data(piece.bytes.data(), piece.bytes.size());
  chunk.set_crc32c(Crc32c(piece.bytes));
}

void EncodeExtension(const ExtensionView& view, v1::ExtendRunReply* reply) {
  reply->set_config_version(view.config_version);
  reply->set_rounds_before(view.rounds_before);
  reply->set_rounds_after(view.rounds_after);
  reply->set_position_steps(view.position);
  reply->set_total_steps_before(view.total_steps_before);
  reply->set_total_steps_after(view.total_steps_after);
  reply->set_learning_rate_before(view.rate_before);
  reply->set_learning_rate_after(view.rate_after);
  reply->set_final_learning_rate(view.final_rate);
  reply->set_reopened(view.reopened);
}

void EncodeScale(const ScaleResult& result, v1::ScaleWorkersReply* reply) {
  reply->set_before(result.before);
  reply->set_target(result.target);
  reply->mutable_names()->Assign(result.names.begin(), result.names.end());
}

void EncodeLauncher(const LauncherView& view, v1::LauncherStatus* message) {
  message->set_kind(view.kind);
  message->set_target(view.target);
  message->set_error(view.error);
  message->mutable_drained()->Assign(view.drained.begin(), view.drained.end());
  for (const LaunchedWorker& worker : view.workers) {
    message->set_running(message->running() + (Runs(worker.state) ? 1 : 0));
    v1::LaunchedWorker* out = message->add_workers();
    out->set_name(worker.name);
    out->set_state(StateName(worker.state));
    out->set_handle(worker.handle);
    out->set_restarts(worker.restarts);
    out->set_last_exit(worker.last_exit);
    out->set_next_start_in_s(ToSeconds(worker.next_start));
  }
}

void EncodeCheckpoint(const CheckpointView& view, v1::CheckpointInfo* message) {
  message->set_name(view.name);
  message->set_epoch(view.epoch.value());
  for (const Version version : view.versions) message->add_versions(version.value());
  message->set_committed_tokens(view.committed_tokens);
  message->set_created_unix_nanos(view.created_unix_ns);
  message->set_bytes(view.bytes);
  message->set_shared_bytes(view.shared_bytes);
  message->set_automatic(view.automatic);
  message->set_path(view.path);
  message->set_damage(view.damage);
}

void EncodeRestore(const RestoreResult& result, v1::RestoreCheckpointReply* reply) {
  reply->set_epoch(result.epoch.value());
  for (const Version version : result.versions) reply->add_versions(version.value());
  reply->set_committed_tokens(result.committed_tokens);
}

void EncodeVerify(const VerifyView& view, v1::VerifyProgress* message) {
  message->set_fragment(view.fragment.value());
  message->set_version(view.version.value());
  message->set_done(view.done);
  message->set_total(view.total);
  message->set_verdict(static_cast<v1::VerifyProgress::Verdict>(view.verdict));
  message->set_message(view.message);
  message->mutable_confirmed_by()->Assign(view.confirmed_by.begin(), view.confirmed_by.end());
  message->mutable_denied_by()->Assign(view.denied_by.begin(), view.denied_by.end());
}

void EncodeMetrics(const MetricsView& view, v1::GetMetricsReply* reply) {
  reply->set_wall_seconds(view.wall_seconds);
  reply->set_committed_tokens(view.committed_tokens);
  reply->set_total_tokens(view.total_tokens);
  reply->set_version(view.version.value());
  reply->set_train_loss(view.train_loss);
  reply->set_validation_loss(view.validation_loss);
  reply->set_best_validation_loss(view.best_validation_loss);
  reply->set_loss_slope_per_million_tokens(view.loss_slope_per_million_tokens);
  reply->set_tokens_per_second(view.tokens_per_second);
  reply->set_compute_utilisation(view.compute_utilisation);
  reply->set_push_bytes(view.push_bytes);
  reply->set_pull_bytes(view.pull_bytes);
  reply->set_data_parallel_bytes(view.data_parallel_bytes);
  reply->set_communication_reduction(view.communication_reduction);
  reply->set_round_seconds_mean(view.round_seconds_mean);
  reply->set_commit_seconds_mean(view.commit_seconds_mean);
  reply->set_live_trainers(view.live_trainers);
}

void EncodeRounds(const RoundListView& view, v1::ListRoundsReply* reply) {
  reply->set_head_version(view.head.value());
  for (const RoundDetailView& round : view.rounds) {
    v1::RoundDetail* detail = reply->add_rounds();
    EncodeRound(round.summary, detail->mutable_summary());
    detail->set_config_version(round.config_version);
    for (const RoundContributionView& contribution : round.contributions) {
      v1::RoundContribution* out = detail->add_contributions();
      out->set_worker(contribution.worker);
      out->set_late_versions(contribution.late_versions);
      out->set_tokens(contribution.tokens);
      out->set_steps(contribution.steps);
      out->set_loss(contribution.loss);
      out->set_norm(contribution.norm);
      out->set_weight(contribution.weight);
      out->set_payload_bytes(contribution.payload_bytes);
    }
  }
}

void EncodePoint(const MetricPointView& view, v1::MetricPoint* message) {
  message->set_name(view.name);
  message->set_worker(view.worker);
  message->set_version(view.version.value());
  message->set_committed_tokens(view.committed_tokens);
  message->set_unix_nanos(view.unix_ns);
  message->set_value(view.value);
}

}  // namespace atl
