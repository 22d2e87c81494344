#include "client/sync/outer_sync.h"

#include <algorithm>
#include <utility>

#include "client/sync/command_check.h"
#include "client/sync/evaluation.h"
#include "client/sync/rejection.h"
#include "client/sync/seeding.h"
#include "common/human.h"
#include "common/status.h"
#include "common/trace_context.h"

namespace atl {
OuterSync::OuterSync(const OuterSyncOptions& options, Session* session, Replica* replica,
                     const std::vector<FragmentLayout>& layout, const ResumeState& resume_state,
                     RetryPolicy* retry_policy, Heartbeater* heartbeater, const WorkerContext& context)
    : session_(session),
      replica_(replica),
      layout_(layout),
      resume_state_(resume_state),
      retry_policy_(retry_policy),
      heartbeater_(heartbeater),
      context_(context),
      puller_(session, replica, layout, context),
      delivery_(session, retry_policy, context),
      push_journal_(resume_state.checkpoint, context),
      encoders_(MakeEncoders(session->info().run, layout, *replica)),
      data_(session, replica, context),
      guard_(options, context) {
  context_.worker_status->HideLosses(session->info().run.privacy.noisy());
}

absl::StatusOr<SyncEnd> OuterSync::Run() {
  ATOLL_RETURN_IF_ERROR(
      push_journal_.TakeUp(layout_, encoders_, session_->info(), data_.partition(), delivery_, *replica_));
  NextMove move{.until = Until::kHead};
  while (!move.end.has_value()) {
    const ScopedTrace trace(NewTrace());  // from the pull to the verdict on the push
    ATOLL_ASSIGN_OR_RETURN(const Outcome outcome, puller_.Advance(move.until));
    switch (outcome) {
      case Outcome::kAdopted: {
        ATOLL_ASSIGN_OR_RETURN(move, Work());
        break;
      }
      case Outcome::kInterrupted: {
        ATOLL_ASSIGN_OR_RETURN(move, FollowCommands());
        break;
      }
      case Outcome::kFinished:
        move.end = EndOfRun(context_.worker_status->commands());
        break;
    }
  }
  return *move.end;
}

absl::StatusOr<OuterSync::NextMove> OuterSync::FollowCommands() {
  const WorkerCommands commands = context_.worker_status->commands();
  if (commands.stop) return NextMove{.end = SyncEnd::kStopped};
  if (commands.run_stopped) return NextMove{.end = SyncEnd::kRunStopped};
  if (commands.drain) return NextMove{.end = EndOfDrain(commands)};
  if (commands.resync) {
    context_.log.Info("ordered to drop local progress and pull the head");
    context_.worker_status->Done(&WorkerCommands::resync);
  } else if (commands.seed_granted && !puller_.fragments().front().version.has_value()) {
    ATOLL_RETURN_IF_ERROR(UseSeedGrant(*session_, *replica_, layout_, *retry_policy_, context_));
  }
  return NextMove{.until = Until::kHead};
}

absl::StatusOr<OuterSync::NextMove> OuterSync::Work() {
  MarkAccepted(session_->info().accepted, puller_.fragments(), encoders_);
  const RoundPlan& plan = puller_.plan();
  if (puller_.config_version() > session_->info().config_version) {
    return NextMove{.end = SyncEnd::kReconfigured};
  }
  if (plan.evaluate && evaluated_ != puller_.version()) {
    ATOLL_RETURN_IF_ERROR(EvaluateVersion(*replica_, {.version = puller_.version(), .tasks = plan.run_tasks},
                                          session_->info().run, *heartbeater_, context_));
    evaluated_ = puller_.version();
  }
  const bool nothing_to_train = plan.inner_steps == 0 || puller_.run_state() == RunState::kFinished;
  if (nothing_to_train || AllDone()) return NextMove{.until = Until::kNext};
  return TrainAndPush();
}

absl::StatusOr<bool> OuterSync::Interrupted() {
  return CommandEndsSteps(
      [this](const WorkerCommands& commands) { return session_->CheckMembership(commands); }, context_);
}

absl::StatusOr<OuterSync::NextMove> OuterSync::TrainAndPush() {
  const MonoTime begin = context_.clock->Now();
  ATOLL_RETURN_IF_ERROR(data_.Follow(puller_.plan(), replica_->samples_consumed()).status());
  BeginOptimizerWarmup(resume_state_, session_->info().run, puller_.plan(), context_);
  for (size_t i = 0; i < encoders_.size(); ++i) {
    encoders_[i].BeginSteps(layout_[i], puller_.TakeWritten(i));
  }
  const uint64_t first_sample = replica_->samples_consumed();
  const auto round = RunInnerSteps(
      *replica_, session_->info().run, puller_.plan(), *resume_state_.optimizer_warmup,
      [this] { return Interrupted(); }, context_);
  if (!round.ok()) {
    if (IsNotFinite(round.status())) return DropRound(round.status());
    return round.status();
  }
  if (round->interrupted) {
    const WorkerCommands commands = context_.worker_status->commands();
    const bool hands_over = commands.drain && !commands.stop && !commands.resync && !commands.run_stopped;
    if (!hands_over || round->steps == 0) {
      if (commands.drain && commands.stop && round->steps > 0) NoteUnpacked();
      // What was trained on in vain is due again.
      ATOLL_RETURN_IF_ERROR(replica_->Seek(first_sample));
      return FollowCommands();
    }
    context_.log.Info("leaving before the end of the round; pushing what is done",
                      {{"steps", round->steps}, {"of", puller_.plan().inner_steps}});
  }
  ATOLL_ASSIGN_OR_RETURN(NextMove move, PushAll(*round));
  LogRound(*round, context_.clock->Now() - begin);
  const WorkerCommands commands = context_.worker_status->commands();
  if (!move.end.has_value() && commands.drain) {
    move.end = EndOfDrain(commands);
  }
  return move;
}

void OuterSync::NoteUnpacked() {
  for (size_t i = 0; i < encoders_.size(); ++i) {
    const Version base = *puller_.fragments()[i].version;
    if (encoders_[i].IsDone(base)) continue;
    context_.worker_status->push_outcomes().Note({.fragment = layout_[i].id, .base = base},
                                                 PushOutcome::kUnpacked);
  }
}

absl::Status OuterSync::EncodeAll(const InnerRound& round) {
  const Spending spending(context_.time, TimeUse::kEncode);
  for (size_t i = 0; i < encoders_.size(); ++i) {
    const FragmentBase& base = puller_.fragments()[i];
    if (encoders_[i].IsDone(*base.version)) continue;
    ATOLL_RETURN_IF_ERROR(encoders_[i].EncodeRound(base, round, *replica_, data_.partition(), scratch_));
  }
  return absl::OkStatus();
}

void OuterSync::KeepAll() {
  const Epoch epoch = session_->info().member.epoch;
  for (size_t i = 0; i < encoders_.size(); ++i) {
    if (!encoders_[i].IsDone(*puller_.fragments()[i].version))
      push_journal_.Record(epoch, encoders_[i], context_.time);
  }
  CheckpointRound(resume_state_, epoch, puller_.version(), puller_.plan().committed_tokens, *replica_,
                  context_);
}

void OuterSync::ConfirmAll() {
  if (resume_state_.key == nullptr) return;
  const Spending spending(context_.time, TimeUse::kEncode);
  for (size_t i = 0; i < layout_.size(); ++i) {
    Confirm(resume_state_, session_->info().member, puller_.fragments()[i], puller_.HashBase(i),
            *context_.worker_status);
  }
}

absl::StatusOr<OuterSync::NextMove> OuterSync::PushAll(const InnerRound& round) {
  const absl::Status packed = EncodeAll(round);
  if (absl::IsInvalidArgument(packed)) return DropRound(packed);
  ATOLL_RETURN_IF_ERROR(packed);
  KeepAll();
  for (size_t i = 0; i < encoders_.size(); ++i) {
    if (encoders_[i].IsDone(*puller_.fragments()[i].version)) continue;
    ATOLL_ASSIGN_OR_RETURN(const std::optional<NextMove> elsewhere, Deliver(i));
    if (!elsewhere.has_value()) continue;
    // The rest of a round that is dropped was packed, but never sent. Who comes back asks about it.
    const bool dropped = elsewhere->end != SyncEnd::kStopped && elsewhere->end != SyncEnd::kReconfigured;
    for (size_t j = i + 1; dropped && j < encoders_.size(); ++j) {
      if (!encoders_[j].IsDone(*puller_.fragments()[j].version))
        push_journal_.Settle(encoders_[j], Verdict::kNotFinite, context_.time);
    }
    return *elsewhere;
  }
  ConfirmAll();
  guard_.RoundCounted();
  return NextMove{.until = Until::kNext};
}

absl::StatusOr<std::optional<OuterSync::NextMove>> OuterSync::Deliver(size_t fragment) {
  PseudoGradientEncoder& encoder = encoders_[fragment];
  const auto report = delivery_.Deliver(encoder.header(), encoder.payload());
  if (absl::IsCancelled(report.status()) && context_.worker_status->commands().stop) {
    return NextMove{.end = SyncEnd::kStopped};
  }
  ATOLL_RETURN_IF_ERROR(report.status());
  if (HasOldCodec(*report)) {
    LogOldCodec(encoder.header(), *report, context_.log);
    return NextMove{.end = SyncEnd::kReconfigured};
  }
  push_journal_.Settle(encoder, *report, context_.time);
  if (report->verdict == Verdict::kNotFinite) return DropRound(report->rejection);
  if (report->verdict == Verdict::kLost) {
    LogLost(encoder.header(), *report, context_.log);
  } else if (report->head > encoder.header().key.base) {
    // Into the open round when it was late; in a round that is closed already otherwise.
    context_.log.Debug("the head has moved on meanwhile",
                       {{"fragment", encoder.header().key.fragment.value()},
                        {"base", encoder.header().key.base.value()},
                        {"head", report->head.value()}});
  }
  return std::nullopt;
}

OuterSync::NextMove OuterSync::DropRound(const absl::Status& error) {
  guard_.RoundDropped(puller_.version(), error);
  if (guard_.hopeless()) return {.end = SyncEnd::kDiverged};
  return {.until = Until::kHead};
}

bool OuterSync::AllDone() const {
  for (size_t i = 0; i < encoders_.size(); ++i) {
    if (!encoders_[i].IsDone(*puller_.fragments()[i].version)) return false;
  }
  return true;
}

void OuterSync::LogRound(const InnerRound& round, Duration duration) {
  context_.observer->OnRound(round.steps, round.tokens, round.mean_loss(), duration);
  const double compute = std::max(ToSeconds(round.compute), 1e-9);
  LogFields fields = {{"base", puller_.version().value()}, {"steps", round.steps}};
  // 0: the loop has told none.
  if (round.mean_loss() != 0) fields.emplace_back("loss", round.mean_loss());
  fields.emplace_back("tokens_per_second", static_cast<double>(round.tokens) / compute);
  fields.emplace_back("took", HumanDuration(duration));
  context_.log.Info("round done", fields);
}

}  // namespace atl
