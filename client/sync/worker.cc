#include "client/sync/worker.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "client/sync/evaluation.h"
#include "client/sync/evaluator_loop.h"
#include "client/sync/exchange_runner.h"
#include "client/sync/overlapped_sync.h"
#include "client/sync/rejection.h"
#include "common/status.h"

namespace atl {
namespace {

std::string_view ReasonText(SyncEnd end) {
  switch (end) {
    case SyncEnd::kFinished:
      return "the run is finished";
    case SyncEnd::kRunStopped:
      return "the run was stopped";
    case SyncEnd::kReconfigured:
    case SyncEnd::kRestart:
      return "restarting";
    case SyncEnd::kDrained:
      return "drained";
    case SyncEnd::kStopped:
      return "stopped";
    case SyncEnd::kDiverged:
      break;
  }
  return "its rounds are not finite";
}

std::string_view OutcomeText(PushOutcome outcome) {
  switch (outcome) {
    case PushOutcome::kForgotten:
      return "the coordinator was not asked before it forgot that round. Its content is not sent again, so "
             "that nothing counts twice";
    case PushOutcome::kDropped:
      return "its values were not finite, so its content was dropped";
    case PushOutcome::kKept:
      return "the coordinator did not answer in time. The state directory keeps it: a worker that starts "
             "with "
             "this state directory asks whether it counts, and sends it again while its round is open";
    case PushOutcome::kUnkept:
      return "the coordinator did not answer in time, and the state directory does not keep it";
    case PushOutcome::kUnpacked:
      return "its steps were not encoded in time. They are lost: the state directory does not keep them";
    case PushOutcome::kCounted:
    case PushOutcome::kCarried:
      break;
  }
  return "its round closed without it. Where the run uses error feedback, a worker that starts with this "
         "state "
         "directory adds the content to its next push";
}

/// What is known of a push that may not count.
std::string_view VerdictText(PushOutcome outcome) {
  switch (outcome) {
    case PushOutcome::kForgotten:
      return "may not count";
    case PushOutcome::kKept:
    case PushOutcome::kUnkept:
      return "was not acknowledged";
    case PushOutcome::kUnpacked:
      return "was not sent";
    case PushOutcome::kCounted:
    case PushOutcome::kCarried:
    case PushOutcome::kDropped:
      break;
  }
  return "did not count";
}

/// The accounts of the exchange threads of one configuration.
class ChannelTimes {
 public:
  ChannelTimes(const Clock* clock, size_t channels, TimeAccounts* all) : all_(all) {
    while (accounts_.size() < channels) {
      all_->Add(accounts_.emplace_back(std::make_unique<TimeAccount>(clock, TimeUse::kIdle)).get());
    }
  }
  ~ChannelTimes() {
    for (const auto& account : accounts_) all_->Remove(account.get());
  }
  ChannelTimes(const ChannelTimes&) = delete;
  ChannelTimes& operator=(const ChannelTimes&) = delete;
  const std::vector<std::unique_ptr<TimeAccount>>& accounts() const { return accounts_; }

 private:
  TimeAccounts* const all_;
  std::vector<std::unique_ptr<TimeAccount>> accounts_;
};

}  // namespace

Worker::Worker(WorkerOptions options, WorkerDeps deps)
    : options_(std::move(options)),
      deps_(std::move(deps)),
      training_time_(deps_.clock, TimeUse::kStart),
      context_{deps_.clock, deps_.sleeper, deps_.observer, &worker_status_, deps_.log, &training_time_},
      retry_policy_(options_.retry_policy, options_.backoff_seed, context_),
      metered_data_(deps_.data, context_),
      metered_control_(deps_.control, context_),
      connection_(&metered_data_, &retry_policy_),
      session_(&connection_, options_.join, context_),
      audit_(options_.peers, &metered_control_, context_),
      heartbeater_(
          &metered_control_, context_,
          [this] {
            // Who trains sees commands between two steps; who waits for the next version would wait its poll
            // out.
            if (!overlapping_) connection_.EndPulls();
          },
          &audit_) {
  worker_status_.WatchTime(&training_time_, &exchange_time_);
}

WorkerEnd Worker::Run() {
  const absl::StatusOr<SyncEnd> end = Live();
  heartbeater_.Stop();
  WorkerEnd how = EndOf(end);
  how.reached = reached_;
  return how;
}

bool Worker::RequestDrain() {
  if (!worker_status_.RequestDrain()) {
    RequestStop();
    return false;
  }
  connection_.CancelPulls();
  return true;
}

void Worker::RequestStop(Duration goodbye, std::string_view why) {
  {
    const MutexLock lock(&stop_mutex_);
    if (stopped_because_.empty()) stopped_because_ = std::string(why);
  }
  worker_status_.RequestStop();
  connection_.CancelPulls();
  connection_.CancelPushes();
  connection_.CancelCalls(goodbye);
  metered_control_.CancelCalls(goodbye);
}

absl::StatusOr<SyncEnd> Worker::Live() {
  EnterPhase(context_, WorkerPhase::kJoining);
  ATOLL_ASSIGN_OR_RETURN(JoinedRun described, session_.Describe());
  reached_ = true;
  bool joins = true;
  while (true) {
    if (replica_ == nullptr || built_for_ != described.config_version) {
      ATOLL_RETURN_IF_ERROR(BuildReplica(described));
    }
    if (joins) {
      if (!session_.TakeRestartPending())
        ATOLL_RETURN_IF_ERROR(session_.Join(ManifestHash(replica_->manifest())));
      ForgetLostVersions();
      heartbeater_.Start(session_.info().heartbeat);
      ATOLL_RETURN_IF_ERROR(GoToAssignedData());
    }
    joins = false;
    described = session_.info();
    if (described.config_version != built_for_) continue;
    auto end = Synchronise();
    if (end.ok() && *end == SyncEnd::kReconfigured) {
      // The run may have been restored since.
      if (const absl::Status known = session_.Reconfigure(); !known.ok()) end = known;
    }
    if (!end.ok() && RejectionReasonOf(end.status()) == RejectionReason::kWrongEpoch) {
      context_.log.Warning("starting again from the published version", {{"because", Explain(end.status())}});
      joins = true;
    } else if (!end.ok() || *end != SyncEnd::kReconfigured) {
      return end;
    }
    described = session_.info();
  }
}

void Worker::ForgetLostVersions() {
  worker_status_.DropAbove(session_.info().fragments);
  audit_.DropAbove(session_.info().fragments);
}

absl::Status Worker::BuildReplica(const JoinedRun& info) {
  ReplicaState carried;
  const bool carries = replica_ != nullptr && replica_->SaveState(carried).ok();
  replica_.reset();  // two models may not fit
  auto made = deps_.make_replica(info);
  if (RejectionReasonOf(made.status()) == RejectionReason::kManifestMismatch) session_.ReportOtherModel(info);
  ATOLL_ASSIGN_OR_RETURN(replica_, std::move(made));
  built_for_ = info.config_version;
  context_.log.Info("built the model", {{"run", info.run.name},
                                        {"parameters", replica_->manifest().elements()},
                                        {"tensors", replica_->manifest().tensors.size()}});
  if (!carries) return LoadCheckpoint(info);
  const absl::Status taken_up = replica_->LoadState(carried);
  if (taken_up.ok()) return absl::OkStatus();
  context_.log.Warning("the new configuration needs a new inner optimizer", {{"because", Explain(taken_up)}});
  optimizer_warmup_.SetCold();
  return absl::OkStatus();
}

absl::Status Worker::LoadCheckpoint(const JoinedRun& info) {
  if (options_.state_folder.empty() || options_.join.role != WorkerRole::kTrainer) return absl::OkStatus();
  checkpoint_.reset();
  ATOLL_ASSIGN_OR_RETURN(checkpoint_,
                         WorkerCheckpoint::Open(options_.state_folder,
                                                {.run_id = info.member.run_id,
                                                 .worker = options_.join.worker,
                                                 .manifest_hash = ManifestHash(replica_->manifest())},
                                                context_.log));
  const auto kept = checkpoint_->LoadRound();
  if (absl::IsNotFound(kept.status())) {
    context_.log.Info("no saved state; starting from the published version",
                      {{"folder", checkpoint_->folder()}});
    optimizer_warmup_.SetCold();
    return absl::OkStatus();
  }
  if (!kept.ok()) ATOLL_RETURN_IF_ERROR(CheckOtherRun(info));
  const absl::Status taken_up = kept.ok() ? replica_->LoadState(kept->replica) : kept.status();
  if (!taken_up.ok()) {
    context_.log.Info("joins cold: the inner optimizer starts without state",
                      {{"because", Explain(taken_up)}});
    optimizer_warmup_.SetCold();
    return absl::OkStatus();
  }
  optimizer_warmup_.Resume(kept->optimizer_warmup_steps, kept->optimizer_warmup_left);
  context_.log.Info("goes on with the state it kept", {{"of_the_round_on", kept->base.value()},
                                                       {"inner_steps", kept->replica.optimizer_steps},
                                                       {"samples_consumed", kept->replica.samples_consumed}});
  return absl::OkStatus();
}

absl::Status Worker::CheckOtherRun(const JoinedRun& info) const {
  const std::string& other = checkpoint_->other_run();
  if (other.empty() || !options_.join.expected_run.empty()) return absl::OkStatus();
  return WithRejection(absl::FailedPreconditionError(absl::StrFormat(
                           "%s keeps the state of run %s, and this coordinator serves run %s ('%s'), which "
                           "would replace it. Use "
                           "another --state-dir for this run, or another --coordinator; if you no longer "
                           "need that state, give "
                           "--expect-run %s",
                           checkpoint_->folder(), other, info.member.run_id, info.run.name, info.run.name)),
                       RejectionReason::kWrongRun);
}

absl::Status Worker::GoToAssignedData() {
  const JoinedRun& info = session_.info();
  LogFields fields = {{"run", info.run.name}, {"returning", info.returning}};
  if (info.data.has_value()) {
    ATOLL_RETURN_IF_ERROR(replica_->SetPartition(info.data->partition, info.data->partitions));
    ATOLL_RETURN_IF_ERROR(replica_->Seek(info.data->samples_consumed));
    fields.emplace_back("partition", info.data->partition);
    fields.emplace_back("partitions", info.data->partitions);
    fields.emplace_back("samples_consumed", info.data->samples_consumed);
  }
  context_.log.Info("joined the run", fields);
  return absl::OkStatus();
}

absl::StatusOr<SyncEnd> Worker::Synchronise() {
  const Spending spending(&training_time_, TimeUse::kOther);
  const JoinedRun& info = session_.info();
  ATOLL_ASSIGN_OR_RETURN(std::vector<FragmentLayout> layout,
                         LayOutFragments(replica_->manifest(), info.fragments, info.run.sync));
  if (options_.join.role == WorkerRole::kTrainer) {
    const ResumeState resume_state{.checkpoint = checkpoint_.get(),
                                   .key = options_.key.has_value() ? &*options_.key : nullptr,
                                   .audit = &audit_,
                                   .optimizer_warmup = &optimizer_warmup_};
    if (info.run.sync.mode == SyncMode::kOverlapped) return Overlap(layout, resume_state);
    OuterSync sync(options_.outer, &session_, replica_.get(), layout, resume_state, &retry_policy_,
                   &heartbeater_, context_);
    auto end = sync.Run();
    not_finite_ = sync.not_finite();
    return end;
  }
  if (info.run.evaluated_by != EvaluatedBy::kEvaluator) {
    context_.log.Warning(
        "this evaluator evaluates nothing: evaluation.by of the run is 'worker'; an operator changes it with "
        "`atollctl config set evaluation.by=evaluator`");
  }
  EvaluatorLoop loop(&session_, replica_.get(), std::move(layout), &heartbeater_, context_);
  return loop.Run();
}

absl::StatusOr<SyncEnd> Worker::Overlap(const std::vector<FragmentLayout>& layout,
                                        const ResumeState& resume_state) {
  ExchangeSetting setting(context_);
  uint64_t seed = options_.backoff_seed;
  RetryPolicyOptions retry_policy = options_.retry_policy;
  retry_policy.give_up_after.reset();  // there was an answer: to the Join
  const auto channel = [&](TimeAccount* time) {
    return std::make_unique<ExchangeChannel>(deps_.data, &session_, retry_policy, ++seed, &setting, time);
  };
  ChannelTimes times(deps_.clock, layout.size(), &exchange_time_);
  std::vector<std::unique_ptr<ExchangeChannel>> channels;
  for (const auto& time : times.accounts()) channels.push_back(channel(time.get()));
  ExchangeThreads runner(std::move(channels), channel(&training_time_));
  OverlappedSync sync(options_.outer,
                      {.session = &session_,
                       .replica = replica_.get(),
                       .retry_policy = &retry_policy_,
                       .heartbeater = &heartbeater_,
                       .runner = &runner,
                       .setting = &setting},
                      layout, resume_state, context_);
  overlapping_ = true;
  auto end = sync.Run();
  not_finite_ = sync.not_finite();
  overlapping_ = false;
  return end;
}

WorkerEnd Worker::EndOf(const absl::StatusOr<SyncEnd>& end) {
  const WorkerCommands commands = worker_status_.commands();
  const bool stopped = absl::IsCancelled(end.status()) && (commands.stop || commands.drain);
  if (!end.ok() && !stopped) {
    // The name of a superseded worker belongs to another process now, and a banned worker has been removed.
    const RejectionReason why = RejectionReasonOf(end.status());
    if (why != RejectionReason::kSuperseded && why != RejectionReason::kBanned) session_.Leave("failed");
    return {.code = ExitCodeOf(end.status()), .status = end.status()};
  }
  const SyncEnd how = stopped ? SyncEnd::kStopped : *end;
  if (how != SyncEnd::kStopped) DeliverReport(heartbeater_, options_.final_heartbeats, context_);
  // No goodbye: it will be back within its lease, at its place in the data.
  if (how == SyncEnd::kRestart) return {.restart = true, .how = how};
  const bool drained = how == SyncEnd::kDrained || (how == SyncEnd::kStopped && commands.drain);
  if (drained) return EndOfDrain(how);
  session_.Leave(LeaveReason(how));
  if (how != SyncEnd::kDiverged) return {.how = how};
  return {.code = ExitCode::kNumerics,
          .status = absl::FailedPreconditionError(absl::StrFormat(
              "the training diverged: %d rounds in a row were not finite, the last because %s. "
              "Lower the learning rate, or check the data and the loss for values that are "
              "not finite",
              options_.outer.max_rounds_not_finite, std::string(not_finite_.message())))};
}

std::string Worker::LeaveReason(SyncEnd how) const {
  const MutexLock lock(&stop_mutex_);
  const bool told = how == SyncEnd::kStopped && !stopped_because_.empty();
  return told ? stopped_because_ : std::string(ReasonText(how));
}

WorkerEnd Worker::EndOfDrain(SyncEnd how) {
  const std::optional<UncountedPush> last = worker_status_.push_outcomes().LastUncounted();
  if (!last.has_value()) {
    session_.Leave(std::string(ReasonText(how)));
    context_.log.Info("drained: nothing that was pushed last is lost");
    return {.how = how};
  }
  const std::string what =
      absl::StrFormat("the last push, on version %d of fragment %d, %s", last->key.base.value(),
                      last->key.fragment.value(), std::string(VerdictText(last->outcome)));
  session_.Leave(absl::StrFormat("%s; %s", std::string(ReasonText(how)), what));
  return {.code = ExitCode::kUncounted,
          .status = absl::FailedPreconditionError(
              absl::StrFormat("drained, but %s: %s", what, OutcomeText(last->outcome))),
          .how = how};
}

}  // namespace atl
