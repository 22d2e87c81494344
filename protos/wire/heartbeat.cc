#include "protos/wire/heartbeat.h"

#include <algorithm>
#include <span>

#include "absl/strings/str_format.h"
#include "common/status.h"
#include "core/known_loss.h"
#include "protos/wire/confirmation.h"
#include "protos/wire/field_check.h"
#include "protos/wire/join.h"
#include "protos/wire/run_state.h"

namespace atl {
namespace {

// A signature is checked for each: a heartbeat must not buy more work than this.
constexpr int kMaxConfirmations = 256;
constexpr int kMaxEvaluations = 256;
constexpr int kMaxTaskScores = 256;

absl::Status CheckLength(std::string_view field, int length, int most) {
  if (length <= most) return absl::OkStatus();
  return BadField(field, absl::StrFormat("are %d; at most %d are allowed", length, most));
}

using TimesProto = google::protobuf::RepeatedPtrField<v1::TimeSpent>;

void TimesToProto(const TimeSpent& spent, std::span<const TimeUse> uses, TimesProto* out) {
  for (const TimeUse use : uses) {
    if (spent[use] <= 0) continue;
    v1::TimeSpent& one = *out->Add();
    one.set_use(static_cast<v1::TimeUse>(use));
    one.set_seconds(spent[use]);
  }
}

/// What a stranger says: nothing negative, nothing that is not finite, nothing beyond the life of a process.
double Spent(double seconds) { return seconds > 0 && seconds <= kLongestTimeSpent ? seconds : 0; }

TimeSpent TimesFromProto(const TimesProto& in) {
  TimeSpent spent;
  for (const v1::TimeSpent& one : in) {
    if (one.use() > 0 && static_cast<size_t>(one.use()) < kTimeUses) {
      spent[static_cast<TimeUse>(one.use())] = Spent(one.seconds());
    }
  }
  return spent;
}

double Believable(double value, double most) { return value >= 0 && value <= most ? value : 0; }

}  // namespace

v1::Progress ProgressToProto(const ProgressReport& progress) {
  v1::Progress message;
  message.set_phase(static_cast<v1::WorkerPhase>(progress.phase));
  message.set_base_version(progress.base.value());
  message.set_step(progress.step);
  message.set_steps(progress.steps);
  message.set_loss(progress.loss);
  message.set_gradient_norm(progress.gradient_norm);
  message.set_learning_rate(progress.learning_rate);
  message.set_tokens_per_second(progress.tokens_per_second);
  message.set_memory_bytes(progress.memory_bytes);
  message.set_model_flops_per_second(progress.model_flops_per_second);
  message.set_peak_flops_per_second(progress.peak_flops_per_second);
  const TimeSpent& training = progress.training;
  TimesToProto(training, TrainingUses(), message.mutable_training_time());
  TimesToProto(progress.exchanges, ExchangeUses(), message.mutable_exchange_time());
  const double compute = training[TimeUse::kCompute] + training[TimeUse::kOverdue];
  const double wait = training[TimeUse::kWait] + training[TimeUse::kPause];
  message.set_compute_seconds(compute);
  message.set_wait_seconds(wait);
  message.set_exchange_seconds(std::max(0.0, training.total() - compute - wait));
  message.set_waiting_for(progress.waiting_for);
  return message;
}

ProgressReport ProgressFromProto(const v1::Progress& in) {
  ProgressReport out;
  out.phase =
      v1::WorkerPhase_IsValid(in.phase()) ? static_cast<WorkerPhase>(in.phase()) : WorkerPhase::kUnknown;
  out.base = Version(in.base_version());
  out.step = in.step();
  out.steps = in.steps();
  out.loss = IsPossibleLoss(in.loss()) ? in.loss() : 0;  // the run knows the bounds of its model
  out.gradient_norm = Believable(in.gradient_norm(), 1e30);
  out.learning_rate = Believable(in.learning_rate(), 1e6);
  out.tokens_per_second = Believable(in.tokens_per_second(), 1e12);
  out.memory_bytes = in.memory_bytes();
  out.model_flops_per_second = Believable(in.model_flops_per_second(), 1e24);
  out.peak_flops_per_second = Believable(in.peak_flops_per_second(), 1e24);
  out.training = TimesFromProto(in.training_time());
  out.exchanges = TimesFromProto(in.exchange_time());
  if (in.training_time().empty()) {  // an older worker
    out.training[TimeUse::kCompute] = Spent(in.compute_seconds());
    out.training[TimeUse::kWait] = Spent(in.wait_seconds());
    out.training[TimeUse::kPush] = Spent(in.exchange_seconds());
  }
  out.waiting_for = ShownText(in.waiting_for());
  return out;
}

v1::Command WorkerCommandToProto(WorkerCommand command) {
  switch (command) {
    case WorkerCommand::kNone:
      return v1::COMMAND_NONE;
    case WorkerCommand::kDrain:
      return v1::COMMAND_DRAIN;
    case WorkerCommand::kRestart:
      return v1::COMMAND_RESTART;
    case WorkerCommand::kStop:
      return v1::COMMAND_STOP;
    case WorkerCommand::kResync:
      return v1::COMMAND_RESYNC;
  }
  return v1::COMMAND_UNSPECIFIED;
}

WorkerCommand WorkerCommandFromProto(v1::Command command) {
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

v1::TaskScore TaskScoreToProto(const TaskScore& score) {
  v1::TaskScore message;
  message.set_task(score.task);
  message.set_metric(score.metric);
  message.set_value(score.value);
  message.set_standard_error(score.standard_error);
  message.set_questions(score.questions);
  return message;
}

v1::EvaluationReport EvaluationReportToProto(const EvaluationReport& report) {
  v1::EvaluationReport message;
  message.set_version(report.version.value());
  message.set_loss(report.loss);
  message.set_tokens(report.tokens);
  for (const TaskScore& score : report.tasks) *message.add_tasks() = TaskScoreToProto(score);
  return message;
}

EvaluationReport EvaluationReportFromProto(const v1::EvaluationReport& report) {
  EvaluationReport out{
      .version = Version(report.version()), .loss = report.loss(), .tokens = report.tokens()};
  for (const v1::TaskScore& score : report.tasks()) {
    out.tasks.push_back({.task = ShownText(score.task()),
                         .metric = ShownText(score.metric()),
                         .value = score.value(),
                         .standard_error = score.standard_error(),
                         .questions = score.questions()});
  }
  return out;
}

v1::HeartbeatRequest HeartbeatCallToProto(const MemberRef& member, const HeartbeatCall& call) {
  v1::HeartbeatRequest request;
  *request.mutable_worker() = MemberRefToProto(member);
  if (call.device.has_value()) *request.mutable_capabilities() = DeviceToProto(*call.device);
  *request.mutable_progress() = ProgressToProto(call.progress);
  for (const EvaluationReport& report : call.evaluations) {
    *request.add_evaluations() = EvaluationReportToProto(report);
  }
  for (const Confirmation& confirmation : call.confirmations) {
    *request.add_confirmations() = ConfirmationToProto(confirmation);
  }
  return request;
}

absl::StatusOr<HeartbeatCall> HeartbeatCallFromProto(const v1::HeartbeatRequest& request) {
  HeartbeatCall call;
  call.progress = ProgressFromProto(request.progress());
  if (request.has_capabilities()) {
    ATOLL_ASSIGN_OR_RETURN(call.device, DeviceFromProto(request.capabilities()));
  }
  ATOLL_RETURN_IF_ERROR(CheckLength("evaluations", request.evaluations_size(), kMaxEvaluations));
  ATOLL_RETURN_IF_ERROR(CheckLength("confirmations", request.confirmations_size(), kMaxConfirmations));
  for (const v1::EvaluationReport& report : request.evaluations()) {
    ATOLL_RETURN_IF_ERROR(CheckLength("evaluations.tasks", report.tasks_size(), kMaxTaskScores));
    call.evaluations.push_back(EvaluationReportFromProto(report));
  }
  for (const v1::Confirmation& confirmation : request.confirmations()) {
    call.confirmations.push_back(ConfirmationFromProto(confirmation));
  }
  return call;
}

v1::HeartbeatReply HeartbeatReplyToProto(const HeartbeatReply& reply) {
  v1::HeartbeatReply message;
  message.set_lease_s(ToSeconds(reply.lease));
  message.set_state(RunStateToProto(reply.state));
  FragmentHeadsToProto(reply.fragments, message.mutable_fragments());
  message.set_seed_granted(reply.seed_granted);
  message.set_command(WorkerCommandToProto(reply.command));
  message.set_at_once(reply.at_once);
  return message;
}

HeartbeatReply HeartbeatReplyFromProto(const v1::HeartbeatReply& message) {
  return {.lease = BoundedSeconds(message.lease_s()),
          .state = RunStateFromProto(message.state()),
          .fragments = FragmentHeadsFromProto(message.fragments()),
          .seed_granted = message.seed_granted(),
          .command = WorkerCommandFromProto(message.command()),
          .at_once = message.at_once()};
}

}  // namespace atl
