#include "worker/sync/outer_sync.h"

#include <algorithm>
#include <utility>

#include "common/human.h"
#include "common/status.h"
#include "worker/sync/evaluation.h"
#include "worker/sync/rejection.h"
#include "worker/sync/seeding.h"

namespace atoll {

OuterSync::OuterSync(const OuterSyncOptions& options, Session* session, Replica* replica,
                     const std::vector<FragmentLayout>& layout, Patience* patience, Heartbeater* heartbeater,
                     const WorkerContext& context)
    : options_(options),
      session_(session),
      replica_(replica),
      layout_(layout),
      patience_(patience),
      heartbeater_(heartbeater),
      context_(context),
      follower_(session, replica, layout, context),
      delivery_(session, patience, context) {
  for (const FragmentLayout& fragment : layout) {
    packers_.emplace_back(session->info().run, fragment.elements);
  }
}

absl::StatusOr<SyncEnd> OuterSync::Run() {
  NextMove move{.until = Until::kHead};
  while (!move.end.has_value()) {
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
        move.end = SyncEnd::kFinished;
        break;
    }
  }
  return *move.end;
}

absl::StatusOr<OuterSync::NextMove> OuterSync::Obey() {
  const Orders orders = context_.board->orders();
  if (orders.stop) return NextMove{.end = SyncEnd::kStopped};
  if (orders.drain) return NextMove{.end = SyncEnd::kDrained};
  if (orders.resync) {
    context_.log.Info("ordered to drop local progress and pull the head");
    context_.board->ResyncDone();
  } else if (orders.seed_granted && !follower_.fragments().front().version.has_value()) {
    ATOLL_RETURN_IF_ERROR(Seed());
  }
  return NextMove{.until = Until::kHead};
}

absl::Status OuterSync::Seed() {
  const absl::Status seeded = SeedRun(*session_, *replica_, layout_, context_);
  context_.board->SeedGrantUsed();
  if (seeded.ok() || RejectionOf(seeded) == RefusalReason::kWrongEpoch) return seeded;
  const bool refused = RejectionOf(seeded) != RefusalReason::kNone;
  const bool defect = absl::IsInvalidArgument(seeded) || absl::IsUnimplemented(seeded);
  if (defect || (refused && ReactionTo(seeded) == Reaction::kExit)) return seeded;
  // An attempt whose answer was lost may have seeded the run, or the grant went to another worker: the next
  // pull shows it.
  patience_->Pause(seeded, "to seed the run");
  return absl::OkStatus();
}

absl::StatusOr<OuterSync::NextMove> OuterSync::Work() {
  NoteDoneBases();
  const PlannedRound& plan = follower_.plan();
  if (plan.evaluate && evaluated_ != follower_.version()) {
    ATOLL_RETURN_IF_ERROR(EvaluateVersion(*replica_, follower_.version(),
                                          session_->info().run.evaluation_batches, *heartbeater_, context_));
    evaluated_ = follower_.version();
  }
  const bool nothing_to_train = plan.inner_steps == 0 || follower_.run_state() == RunState::kFinished;
  if (nothing_to_train || AllDone()) return NextMove{.until = Until::kNext};
  return TrainAndPush();
}

absl::StatusOr<OuterSync::NextMove> OuterSync::TrainAndPush() {
  const MonoTime begin = context_.clock->Now();
  const auto interrupt = [this]() -> absl::StatusOr<bool> {
    const Orders orders = context_.board->orders();
    ATOLL_RETURN_IF_ERROR(session_->Heed(orders));
    return orders.stop || orders.resync;
  };
  const auto round = RunInnerSteps(*replica_, session_->info().run, follower_.plan(), interrupt, context_);
  if (!round.ok()) {
    const bool not_finite =
        absl::IsFailedPrecondition(round.status()) && RejectionOf(round.status()) == RefusalReason::kNone;
    if (not_finite) return DropRound(round.status());
    return round.status();
  }
  if (round->interrupted) return Obey();
  ATOLL_ASSIGN_OR_RETURN(NextMove move, PushAll(*round));
  LogRound(*round, context_.clock->Now() - begin);
  if (!move.end.has_value() && context_.board->orders().drain) move.end = SyncEnd::kDrained;
  return move;
}

absl::StatusOr<OuterSync::NextMove> OuterSync::PushAll(const InnerRound& round) {
  for (size_t i = 0; i < packers_.size(); ++i) {
    ContributionPacker& packer = packers_[i];
    const FragmentBase& base = follower_.fragments()[i];
    if (packer.IsDone(*base.version)) continue;
    const absl::Status packed = packer.Pack(base, round, *replica_, scratch_);
    if (absl::IsInvalidArgument(packed)) return DropRound(packed);
    ATOLL_RETURN_IF_ERROR(packed);
    const auto report = delivery_.Deliver(packer.offer(), packer.payload());
    if (absl::IsCancelled(report.status()) && context_.board->orders().stop) {
      return NextMove{.end = SyncEnd::kStopped};
    }
    ATOLL_RETURN_IF_ERROR(report.status());
    packer.Settle(report->verdict);
    if (report->verdict == Verdict::kNotFinite) return DropRound(report->refusal);
    if (report->verdict == Verdict::kLost) {
      context_.log.Warning("a contribution was refused; its content goes into the next one",
                           {{"fragment", base.layout.id.value()},
                            {"base", base.version->value()},
                            {"error", Explain(report->refusal)}});
    }
  }
  rounds_not_finite_ = 0;
  return NextMove{.until = Until::kNext};
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
