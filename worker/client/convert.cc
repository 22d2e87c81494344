#include "worker/client/convert.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_format.h"
#include "atoll/version.h"
#include "common/status.h"
#include "core/codec.h"
#include "protos/config/run_config.h"
#include "protos/wire/codec.h"
#include "protos/wire/confirmation.h"
#include "protos/wire/manifest.h"
#include "protos/wire/protocol.h"

namespace atl {
namespace {

v1::Role RoleToProto(WorkerRole role) {
  switch (role) {
    case WorkerRole::kTrainer:
      return v1::ROLE_TRAINER;
    case WorkerRole::kEvaluator:
      return v1::ROLE_EVALUATOR;
    case WorkerRole::kObserver:
      break;
  }
  return v1::ROLE_OBSERVER;
}

RunState RunStateFromProto(v1::RunState state) {
  switch (state) {
    case v1::RUN_STATE_STARTING:
      return RunState::kStarting;
    case v1::RUN_STATE_TRAINING:
      return RunState::kTraining;
    case v1::RUN_STATE_DEGRADED:
      return RunState::kDegraded;
    case v1::RUN_STATE_CRITICAL:
      return RunState::kCritical;
    case v1::RUN_STATE_FINISHED:
      return RunState::kFinished;
    case v1::RUN_STATE_PAUSED:
      return RunState::kPaused;
    case v1::RUN_STATE_STOPPED:
      return RunState::kStopped;
    default:
      return RunState::kUnknown;
  }
}

WorkerCommand CommandFromProto(v1::Command command) {
  switch (command) {
    case v1::COMMAND_DRAIN:
      return WorkerCommand::kDrain;
    case v1::COMMAND_RESTART:
      return WorkerCommand::kRestart;
    case v1::COMMAND_STOP:
      return WorkerCommand::kStop;
    case v1::COMMAND_RESYNC:
      return WorkerCommand::kResync;
    default:
      return WorkerCommand::kNone;
  }
}

template <typename Infos>
std::vector<FragmentHead> FragmentsFromProto(const Infos& infos) {
  std::vector<FragmentHead> heads;
  for (const v1::FragmentInfo& info : infos) {
    heads.push_back({FragmentId(info.id()), Version(info.version()), info.elements(), info.endpoint()});
  }
  return heads;
}

/// A number of seconds from outside, as a duration of at most a year.
Duration BoundedSeconds(double seconds) {
  constexpr double kYear = 366.0 * 24 * 3600;
  return std::isfinite(seconds) ? Seconds(std::clamp(seconds, 0.0, kYear)) : Duration::zero();
}

absl::Status Nonsense(std::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrFormat("the coordinator's answer makes no sense: %s", std::string(what)));
}

absl::Status CheckJoinReply(const v1::JoinReply& reply, bool as_member) {
  if (reply.run_id().empty()) return Nonsense("no run id");
  if (as_member && reply.incarnation() == 0) return Nonsense("no incarnation");
  if (!(reply.heartbeat_s() > 0)) return Nonsense("no heartbeat interval");
  if (!reply.manifest_hash().empty() && reply.fragments().empty()) return Nonsense("no fragments");
  return absl::OkStatus();
}

absl::StatusOr<DataPart> DataPartFromProto(const v1::DataAssignment& data) {
  if (data.partition() >= data.partitions()) {
    return Nonsense(absl::StrFormat("data partition %d of %d", data.partition(), data.partitions()));
  }
  return DataPart{data.partition(), data.partitions(), data.samples_consumed()};
}

absl::StatusOr<PlannedRound> PlanFromProto(const v1::RoundPlan& plan) {
  PlannedRound planned{.inner_steps = plan.inner_steps(),
                       .active_workers = plan.active_workers(),
                       .committed_tokens = plan.committed_tokens(),
                       .total_tokens = plan.total_tokens(),
                       .evaluate = plan.evaluate(),
                       .deadline = BoundedSeconds(plan.deadline_s()),
                       .data = std::nullopt,
                       .config_version = plan.config_version()};
  if (plan.has_data()) {
    ATOLL_ASSIGN_OR_RETURN(planned.data, DataPartFromProto(plan.data()));
  }
  return planned;
}

void TimesToProto(const ProgressReport& progress, v1::Progress& to) {
  const auto add = [](const TimeSpent& spent, std::span<const TimeUse> uses, auto& out) {
    for (const TimeUse use : uses) {
      if (spent[use] <= 0) continue;
      v1::TimeSpent& one = *out.Add();
      one.set_use(static_cast<v1::TimeUse>(use));
      one.set_seconds(spent[use]);
    }
  };
  const TimeSpent& training = progress.training;
  add(training, TrainingUses(), *to.mutable_training_time());
  add(progress.exchanges, ExchangeUses(), *to.mutable_exchange_time());
  const double compute = training[TimeUse::kCompute] + training[TimeUse::kOverdue];
  const double wait = training[TimeUse::kWait] + training[TimeUse::kPause];
  to.set_compute_seconds(compute);
  to.set_wait_seconds(wait);
  to.set_exchange_seconds(std::max(0.0, training.total() - compute - wait));
}

v1::Capabilities CapabilitiesToProto(const DeviceDescription& device) {
  v1::Capabilities capabilities;
  capabilities.set_software_version(std::string(kVersion));
  capabilities.set_device(device.device);
  capabilities.set_device_name(device.device_name);
  capabilities.set_threads(device.threads);
  capabilities.set_memory_bytes(device.memory_bytes);
  capabilities.set_device_memory_bytes(device.device_memory_bytes);
  return capabilities;
}

}  // namespace

v1::WorkerRef WorkerRefToProto(const MemberRef& member) {
  v1::WorkerRef ref;
  ref.set_run_id(member.run_id);
  ref.set_epoch(member.epoch.value());
  ref.set_worker(member.worker);
  ref.set_incarnation(member.incarnation.value());
  return ref;
}

v1::JoinRequest JoinRequestToProto(const JoinParameters& parameters) {
  v1::JoinRequest request;
  *request.mutable_protocol() = OurProtocolVersion();
  request.set_worker(parameters.worker);
  request.set_secret(parameters.secret);
  request.set_public_key(parameters.public_key);
  request.set_role(RoleToProto(parameters.role));
  request.set_manifest_hash(parameters.manifest_hash);
  *request.mutable_capabilities() = CapabilitiesToProto(parameters.device);
  if (parameters.dataset.has_value()) {
    v1::Dataset& dataset = *request.mutable_dataset();
    dataset.set_tokenizer(parameters.dataset->tokenizer);
    dataset.set_vocabulary(parameters.dataset->vocabulary);
    dataset.set_train_tokens(parameters.dataset->train_tokens);
    dataset.set_fingerprint(parameters.dataset->fingerprint);
  }
  request.set_expected_run(parameters.expected_run);
  return request;
}

absl::StatusOr<JoinInfo> JoinInfoFromProto(const v1::JoinReply& reply, const JoinParameters& parameters) {
  ATOLL_RETURN_IF_ERROR(CheckProtocolVersion(reply.protocol(), "coordinator"));
  ATOLL_RETURN_IF_ERROR(CheckJoinReply(reply, parameters.BecomesMember()));
  JoinInfo info;
  info.member = {reply.run_id(), Epoch(reply.epoch()), parameters.worker, Incarnation(reply.incarnation())};
  info.lease = BoundedSeconds(reply.lease_s());
  info.heartbeat = BoundedSeconds(reply.heartbeat_s());
  ATOLL_ASSIGN_OR_RETURN(info.run, ToRunOptions(reply.config()));
  info.config_version = reply.config_version();
  info.manifest_hash = reply.manifest_hash();
  if (reply.has_data()) {
    ATOLL_ASSIGN_OR_RETURN(info.data, DataPartFromProto(reply.data()));
  }
  info.fragments = FragmentsFromProto(reply.fragments());
  info.state = RunStateFromProto(reply.state());
  info.seed_granted = reply.seed_granted();
  info.returning = reply.returning();
  for (const v1::PushRef& ref : reply.accepted()) {
    info.accepted.push_back({FragmentId(ref.fragment()), Version(ref.base_version()), ref.sequence()});
  }
  info.committed_tokens = reply.committed_tokens();
  info.total_tokens = reply.total_tokens();
  return info;
}

v1::HeartbeatRequest HeartbeatToProto(const MemberRef& member, const HeartbeatReport& heartbeat_report,
                                      const DeviceDescription& device) {
  const ProgressReport& progress = heartbeat_report.progress;
  v1::HeartbeatRequest request;
  *request.mutable_worker() = WorkerRefToProto(member);
  if (!device.device.empty()) *request.mutable_capabilities() = CapabilitiesToProto(device);
  v1::Progress& to = *request.mutable_progress();
  to.set_phase(static_cast<v1::WorkerPhase>(progress.phase));
  to.set_base_version(progress.base.value());
  to.set_step(progress.step);
  to.set_steps(progress.steps);
  to.set_loss(progress.loss);
  to.set_gradient_norm(progress.gradient_norm);
  to.set_learning_rate(progress.learning_rate);
  to.set_tokens_per_second(progress.tokens_per_second);
  to.set_memory_bytes(progress.memory_bytes);
  TimesToProto(progress, to);
  to.set_waiting_for(progress.waiting_for);
  for (const EvaluationReport& report : heartbeat_report.evaluations) {
    v1::EvaluationReport& one = *request.add_evaluations();
    one.set_version(report.version.value());
    one.set_loss(report.loss);
    one.set_tokens(report.tokens);
  }
  for (const Confirmation& confirmation : heartbeat_report.confirmations) {
    v1::Confirmation& one = *request.add_confirmations();
    one.set_fragment(confirmation.fragment.value());
    one.set_version(confirmation.version.value());
    one.mutable_published()->set_low(confirmation.published.low);
    one.mutable_published()->set_high(confirmation.published.high);
    one.set_signature(confirmation.signature);
  }
  return request;
}

HeartbeatReply HeartbeatReplyFromProto(const v1::HeartbeatReply& reply) {
  return {.lease = BoundedSeconds(reply.lease_s()),
          .state = RunStateFromProto(reply.state()),
          .fragments = FragmentsFromProto(reply.fragments()),
          .seed_granted = reply.seed_granted(),
          .command = CommandFromProto(reply.command()),
          .at_once = reply.at_once()};
}

v1::PullRequest PullRequestToProto(const MemberRef& member, const PullRequest& pull_request) {
  v1::PullRequest request;
  *request.mutable_worker() = WorkerRefToProto(member);
  request.set_fragment(pull_request.fragment.value());
  if (pull_request.after.has_value()) request.set_after_version(pull_request.after->value());
  request.set_wait_ms(static_cast<uint32_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(std::min(pull_request.wait, Seconds(60)))
          .count()));
  if (pull_request.have.has_value()) request.set_have_version(pull_request.have->value());
  if (pull_request.zstd) request.add_accepts(v1::COMPRESSION_ZSTD);
  if (pull_request.progress != nullptr && !pull_request.progress->blocks.empty()) {
    v1::PullRange& range = *request.mutable_range();
    range.set_version(pull_request.progress->version.value());
    if (pull_request.progress->delta_base.has_value())
      range.set_delta_base(pull_request.progress->delta_base->value());
    range.set_first_byte(pull_request.progress->blocks.size() * kHashBlockBytes);
  }
  return request;
}

namespace {

/// Which bytes come: all, the rest of an attempt that broke, or the first part of either.
absl::Status TakeRange(const v1::PullHeader& header, const PullRequest& pull_request, bool in_parts,
                       PulledVersion& pulled) {
  pulled.end_byte = pulled.payload_bytes;
  if (header.first_byte() == 0 && header.end_byte() == 0) return absl::OkStatus();
  pulled.first_byte = header.first_byte();
  pulled.end_byte = header.end_byte();
  const PullProgress* const left = pull_request.progress;
  const bool goes_on = left != nullptr && left->epoch == pulled.epoch && left->version == pulled.version &&
                       left->delta_base == pulled.delta_base &&
                       pulled.first_byte == left->blocks.size() * kHashBlockBytes;
  const bool begins = goes_on || (in_parts && pulled.first_byte == 0);
  const bool a_part = in_parts && pulled.end_byte > pulled.first_byte &&
                      pulled.end_byte < pulled.payload_bytes && pulled.end_byte % kHashBlockBytes == 0;
  if (begins && (a_part || pulled.end_byte == pulled.payload_bytes)) return absl::OkStatus();
  return Nonsense(absl::StrFormat("bytes %d to %d of version %d, which were not asked for",
                                  header.first_byte(), header.end_byte(), header.version()));
}

}  // namespace

absl::StatusOr<PulledVersion> PulledFromProto(const v1::PullHeader& header, const PullRequest& pull_request,
                                              bool in_parts) {
  PulledVersion pulled;
  pulled.epoch = Epoch(header.epoch());
  pulled.version = Version(header.version());
  pulled.published = ContentHashFromProto(header.published());
  ATOLL_ASSIGN_OR_RETURN(pulled.plan, PlanFromProto(header.plan()));
  pulled.state = RunStateFromProto(header.state());
  pulled.waiting_for = header.waiting_for();
  switch (header.outcome()) {
    case v1::PullHeader::PARAMETERS:
      pulled.kind = PullKind::kParameters;
      break;
    case v1::PullHeader::NOT_YET:
      pulled.kind = PullKind::kNotYet;
      return pulled;
    case v1::PullHeader::RUN_FINISHED:
      pulled.kind = PullKind::kRunFinished;
      return pulled;
    default:
      return Nonsense(absl::StrFormat("pull outcome %d", static_cast<int>(header.outcome())));
  }
  ATOLL_ASSIGN_OR_RETURN(const CodecKind codec, CodecFromProto(header.codec()));
  pulled.head = pulled.version;
  if (header.has_delta_base()) {
    pulled.delta_base = Version(header.delta_base());
    pulled.head = Version(header.head_version());
    if (pulled.delta_base != pull_request.have || pulled.version <= *pulled.delta_base ||
        pulled.head < pulled.version) {
      return Nonsense(absl::StrFormat("a difference from version %d to %d, with head %d", header.delta_base(),
                                      header.version(), header.head_version()));
    }
  }
  const CodecKind expected = pulled.delta_base.has_value() ? pull_request.delta_codec : pull_request.codec;
  pulled.payload_bytes = CodecFor(expected).EncodedSize(pull_request.elements);
  if (codec != expected || header.elements() != pull_request.elements ||
      header.payload_bytes() != pulled.payload_bytes) {
    return Nonsense(absl::StrFormat(
        "fragment %d comes as %d elements in codec %d and %d bytes, expected %d in codec %d and %d bytes",
        pull_request.fragment.value(), header.elements(), static_cast<int>(codec), header.payload_bytes(),
        pull_request.elements, static_cast<int>(expected), pulled.payload_bytes));
  }
  ATOLL_RETURN_IF_ERROR(TakeRange(header, pull_request, in_parts, pulled));
  return pulled;
}

v1::PushHeader PushHeaderToProto(const MemberRef& member, const PushHeader& push_header,
                                 uint64_t payload_bytes) {
  v1::PushHeader header;
  *header.mutable_worker() = WorkerRefToProto(member);
  header.set_fragment(push_header.key.fragment.value());
  header.set_base_version(push_header.key.base.value());
  header.set_sequence(push_header.key.sequence);
  header.set_codec(CodecToProto(push_header.codec));
  header.set_payload_bytes(payload_bytes);
  header.set_payload_crc32c(push_header.payload_crc32c);
  header.set_tokens(push_header.tokens);
  header.set_steps(push_header.steps);
  if (push_header.partition.has_value()) header.set_partition(*push_header.partition);
  header.set_samples_consumed(push_header.samples_consumed);
  header.set_mean_loss(push_header.mean_loss);
  return header;
}

v1::GetPushStatusRequest PushStatusRequestToProto(const MemberRef& member, const PushKey& key) {
  v1::GetPushStatusRequest request;
  *request.mutable_worker() = WorkerRefToProto(member);
  request.mutable_push()->set_fragment(key.fragment.value());
  request.mutable_push()->set_base_version(key.base.value());
  request.mutable_push()->set_sequence(key.sequence);
  return request;
}

v1::GetConfirmationsRequest ConfirmationsRequestToProto(const MemberRef& member,
                                                        const ConfirmationsRequest& query) {
  v1::GetConfirmationsRequest request;
  *request.mutable_worker() = WorkerRefToProto(member);
  request.set_fragment(query.fragment.value());
  request.set_first_version(query.first.value());
  request.set_last_version(query.last.value());
  if (query.after.has_value()) {
    request.mutable_after()->set_version(query.after->version.value());
    request.mutable_after()->set_worker(query.after->worker);
  }
  return request;
}

ShownConfirmations ShownConfirmationsFromProto(const v1::ConfirmationPage& page) {
  ShownConfirmations shown;
  for (const v1::SignedConfirmation& one : page.confirmations()) {
    shown.confirmations.push_back(SignedConfirmationFromProto(one));
  }
  if (page.has_next()) {
    shown.next = {.version = Version(page.next().version()), .worker = page.next().worker()};
  }
  return shown;
}

PushStatus PushStatusFromProto(const v1::GetPushStatusReply& reply) {
  PushStatus status{.received_bytes = reply.received_bytes(), .head = Version(reply.head_version())};
  switch (reply.state()) {
    case v1::GetPushStatusReply::PARTIAL:
      status.stage = PushStage::kPartial;
      break;
    case v1::GetPushStatusReply::ACCEPTED:
      status.stage = PushStage::kAccepted;
      break;
    case v1::GetPushStatusReply::COMMITTED:
      status.stage = PushStage::kCommitted;
      break;
    case v1::GetPushStatusReply::MISSED:
      status.stage = PushStage::kMissed;
      break;
    default:
      status.stage = PushStage::kUnknown;
      break;
  }
  return status;
}

}  // namespace atl
