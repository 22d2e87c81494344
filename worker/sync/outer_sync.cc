#include "worker/sync/outer_sync.h"

#include <algorithm>
#include <utility>

#include "common/human.h"
#include "common/status.h"
#include "common/trace_context.h"
#include "worker/sync/evaluation.h"
#include "worker/sync/order_gate.h"
#include "worker/sync/rejection.h"
#include "worker/sync/seeding.h"

namespace atoll {
OuterSync::OuterSync(const OuterSyncOptions& options, Session* session, Replica* replica,
                     const std::vector<FragmentLayout>& layout, const Continuity& continuity,
                     Patience* patience, Heartbeater* heartbeater, const WorkerContext& context)
    : options_(options),
      session_(session),
      replica_(replica),
      layout_(layout),
      continuity_(continuity),
      patience_(patience),
      heartbeater_(heartbeater),
      context_(context),
      follower_(session, replica, layout, context),
      delivery_(session, patience, context),
      pushes_(continuity.disk, context) {
  for (const FragmentLayout& fragment : layout) {
    packers_.emplace_back(session->info().run, fragment.elements);
  }
  if (session->info().data.has_value()) partition_ = session->info().data->partition;
  context_.board->KeepLosses(session->info().run.privacy.noisy());
}

absl::StatusOr<SyncEnd> OuterSync::Run() {
  ATOLL_RETURN_IF_ERROR(
      pushes_.TakeUp(layout_, packers_, session_->info(), partition_, delivery_, *replica_));
  NextMove move{.until = Until::kHead};
  while (!move.end.has_value()) {
    const ScopedTrace trace(NewTrace());  // from the pull to the verdict on the push
    ATOLL_ASSIGN_OR_RETURN(const Outcome outcome, follower_.Advance(move.until));
    switch (outcome) {
      case Outcome::kAdopted: {
        ATOLL_ASSIGN_OR_RETURN(move, Work());
        break;
      }
      case Outcome::kOrdered: {
        ATOLL_ASSIGN_OR_RETURN(move, Obey());
        break;
      }
      case Outcome::kFinished:
        move.end = context_.board->orders().run_stopped ? SyncEnd::kRunStopped : SyncEnd::kFinished;
        break;
    }
  }
  return *move.end;
}

absl::StatusOr<OuterSync::NextMove> OuterSync::Obey() {
  const Orders orders = context_.board->orders();
  if (orders.stop) return NextMove{.end = SyncEnd::kStopped};
  if (orders.run_stopped) return NextMove{.end = SyncEnd::kRunStopped};
  if (orders.drain) return NextMove{.end = orders.restart ? SyncEnd::kRestart : SyncEnd::kDrained};
  if (orders.resync) {
    context_.log.Info("ordered to drop local progress and pull the head");
    context_.board->ResyncDone();
  } else if (orders.seed_granted && !follower_.fragments().front().version.has_value()) {
    ATOLL_RETURN_IF_ERROR(UseSeedGrant(*session_, *replica_, layout_, *patience_, context_));
  }
  return NextMove{.until = Until::kHead};
}

absl::StatusOr<OuterSync::NextMove> OuterSync::Work() {
  NoteDoneBases();
  const PlannedRound& plan = follower_.plan();
  if (follower_.config_version() > session_->info().config_version) {
    return NextMove{.end = SyncEnd::kReconfigured};
  }
  if (plan.evaluate && evaluated_ != follower_.version()) {
    ATOLL_RETURN_IF_ERROR(EvaluateVersion(*replica_, follower_.version(),
                                          session_->info().run.evaluation_batches, *heartbeater_, context_));
    evaluated_ = follower_.version();
  }
  const bool nothing_to_train = plan.inner_steps == 0 || follower_.run_state() == RunState::kFinished;
  if (nothing_to_train || AllDone()) return NextMove{.until = Until::kNext};
  return TrainAndPush();
}

absl::Status OuterSync::GoToData() {
  const std::optional<DataPart>& data = follower_.plan().data;
  if (!data.has_value()) return absl::OkStatus();
  const bool moves = partition_ != data->partition || replica_->samples_consumed() != data->samples_consumed;
  if (!moves) return absl::OkStatus();
  const Spending spending(context_.time, TimeUse::kData);
  context_.log.Debug("goes to another part of the data",
                     {{"partition", data->partition}, {"samples_consumed", data->samples_consumed}});
  ATOLL_RETURN_IF_ERROR(replica_->SetPartition(data->partition, data->partitions));
  partition_ = data->partition;
  session_->MoveTo(*data);
  return replica_->Seek(data->samples_consumed);
}

absl::StatusOr<bool> OuterSync::Interrupted() {
  return OrderedToEnd([this](const Orders& orders) { return session_->Heed(orders); }, context_);
}

absl::StatusOr<OuterSync::NextMove> OuterSync::TrainAndPush() {
  const MonoTime begin = context_.clock->Now();
  ATOLL_RETURN_IF_ERROR(GoToData());
  BeginRewarm(continuity_, session_->info().run, follower_.plan(), context_);
  const uint64_t first_sample = replica_->samples_consumed();
  const auto round = RunInnerSteps(
      *replica_, session_->info().run, follower_.plan(), *continuity_.rewarm,
      [this] { return Interrupted(); }, context_);
  if (!round.ok()) {
    const bool not_finite =
        absl::IsFailedPrecondition(round.status()) && RejectionOf(round.status()) == RefusalReason::kNone;
    if (not_finite) return DropRound(round.status());
    return round.status();
  }
  if (round->interrupted) {
    const Orders orders = context_.board->orders();
    const bool hands_over = orders.drain && !orders.stop && !orders.resync && !orders.run_stopped;
    if (!hands_over || round->steps == 0) {
      // What was trained on in vain is due again.
      ATOLL_RETURN_IF_ERROR(replica_->Seek(first_sample));
      return Obey();
    }
    context_.log.Info("leaving before the end of the round; pushing what is done",
                      {{"steps", round->steps}, {"of", follower_.plan().inner_steps}});
  }
  ATOLL_ASSIGN_OR_RETURN(NextMove move, PushAll(*round));
  LogRound(*round, context_.clock->Now() - begin);
  const Orders orders = context_.board->orders();
  if (!move.end.has_value() && orders.drain) {
    move.end = orders.restart ? SyncEnd::kRestart : SyncEnd::kDrained;
  }
  return move;
}

absl::Status OuterSync::PackAll(const InnerRound& round) {
  const Spending spending(context_.time, TimeUse::kEncode);
  for (size_t i = 0; i < packers_.size(); ++i) {
    const FragmentBase& base = follower_.fragments()[i];
    if (packers_[i].IsDone(*base.version)) continue;
    ATOLL_RETURN_IF_ERROR(packers_[i].Pack(base, round, *replica_, partition_, scratch_));
  }
  return absl::OkStatus();
}

void OuterSync::KeepAll() {
  const Epoch epoch = session_->info().member.epoch;
  for (size_t i = 0; i < packers_.size(); ++i) {
    if (!packers_[i].IsDone(*follower_.fragments()[i].version))
      pushes_.Keep(epoch, packers_[i], context_.time);
  }
  KeepRound(continuity_, epoch, follower_.version(), follower_.plan().committed_tokens, *replica_, context_);
}

void OuterSync::ConfirmAll() {
  if (continuity_.key == nullptr) return;
  const Spending spending(context_.time, TimeUse::kEncode);
  for (size_t i = 0; i < layout_.size(); ++i) {
    Confirm(continuity_, session_->info().member, follower_.fragments()[i], follower_.HashBase(i),
            *context_.board);
  }
}

absl::StatusOr<OuterSync::NextMove> OuterSync::PushAll(const InnerRound& round) {
  const absl::Status packed = PackAll(round);
  if (absl::IsInvalidArgument(packed)) return DropRound(packed);
  ATOLL_RETURN_IF_ERROR(packed);
  KeepAll();
  for (size_t i = 0; i < packers_.size(); ++i) {
    if (packers_[i].IsDone(*follower_.fragments()[i].version)) continue;
    ATOLL_ASSIGN_OR_RETURN(const std::optional<NextMove> elsewhere, Deliver(i));
    if (!elsewhere.has_value()) continue;
    // The rest of a round that is dropped was packed, but never sent. Who comes back asks about it.
    const bool dropped = elsewhere->end != SyncEnd::kStopped && elsewhere->end != SyncEnd::kReconfigured;
    for (size_t j = i + 1; dropped && j < packers_.size(); ++j) {
      if (!packers_[j].IsDone(*follower_.fragments()[j].version))
        pushes_.Settle(packers_[j], Verdict::kNotFinite, context_.time);
    }
    return *elsewhere;
  }
  ConfirmAll();
  rounds_not_finite_ = 0;
  return NextMove{.until = Until::kNext};
}

absl::StatusOr<std::optional<OuterSync::NextMove>> OuterSync::Deliver(size_t fragment) {
  ContributionPacker& packer = packers_[fragment];
  const auto report = delivery_.Deliver(packer.offer(), packer.payload());
  if (absl::IsCancelled(report.status()) && context_.board->orders().stop) {
    return NextMove{.end = SyncEnd::kStopped};
  }
  ATOLL_RETURN_IF_ERROR(report.status());
  if (HasOldCodec(*report)) {
    LogOldCodec(packer.offer(), *report, context_.log);
    return NextMove{.end = SyncEnd::kReconfigured};
  }
  pushes_.Settle(packer, *report, context_.time);
  if (report->verdict == Verdict::kNotFinite) return DropRound(report->refusal);
  const LogFields fields = {{"fragment", packer.offer().key.fragment.value()},
                            {"base", packer.offer().key.base.value()},
                            {"head", report->head.value()}};
  if (report->verdict == Verdict::kLost) {
    context_.log.Warning("a contribution was refused; its content goes into the next one",
                         {fields[0], fields[1], {"error", Explain(report->refusal)}});
  } else if (report->head > packer.offer().key.base) {
    // Into the open round when it was late; in a round that is closed already otherwise.
    context_.log.Debug("the head has moved on meanwhile", fields);
  }
  return std::nullopt;
}

OuterSync::NextMove OuterSync::DropRound(const absl::Status& error) {
  ++rounds_not_finite_;
  context_.observer->OnRoundNotFinite();
  const bool hopeless = rounds_not_finite_ >= options_.max_rounds_not_finite;
  const LogFields fields = {
      {"base", follower_.version().value()}, {"in_a_row", rounds_not_finite_}, {"error", Explain(error)}};
  if (hopeless) {
    context_.log.Error("round after round is not finite; giving up: lower the learning rate", fields);
    return {.end = SyncEnd::kDiverged};
  }
  context_.log.Warning("the round is not finite; dropped, going on from the published parameters", fields);
  return {.until = Until::kHead};
}

void OuterSync::NoteDoneBases() {
  for (const PushKey& key : session_->info().accepted) {
    if (key.fragment.value() >= packers_.size()) continue;
    const size_t i = key.fragment.value();
    if (follower_.fragments()[i].version == key.base) packers_[i].MarkDone(key.base);
  }
}

bool OuterSync::AllDone() const {
  for (size_t i = 0; i < packers_.size(); ++i) {
    if (!packers_[i].IsDone(*follower_.fragments()[i].version)) return false;
  }
  return true;
}

void OuterSync::LogRound(const InnerRound& round, Duration duration) {
  context_.observer->OnRound(round.steps, round.tokens, round.mean_loss(), duration);
  const double compute = std::max(ToSeconds(round.compute), 1e-9);
  context_.log.Info("round done", {{"base", follower_.version().value()},
                                   {"steps", round.steps},
                                   {"loss", round.mean_loss()},
                                   {"tokens_per_second", static_cast<double>(round.tokens) / compute},
                                   {"took", HumanDuration(duration)}});
}

}  // namespace atoll
