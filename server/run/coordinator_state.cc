#include "server/run/coordinator_state.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_format.h"
#include "common/status.h"
#include "core/codec.h"
#include "server/rejection.h"

namespace atl {

CoordinatorState::CoordinatorState(const CoordinatorStateOptions& options)
    : options_(options),
      identity_(options.identity),
      config_(options.config),
      members_(options.config->run, options.identity),
      statistics_(options.config->run),
      evaluation_assignment_(options.config->run.evaluated_by, options.config->run.evaluation_every),
      privacy_(options.fragments) {}

ConfigPtr CoordinatorState::config() const {
  MutexLock lock(&mutex_);
  return config_;
}

ConfigPtr CoordinatorState::RoundConfig(FragmentId fragment) const {
  MutexLock lock(&mutex_);
  return fragment.value() < fragments_.size() ? fragments_[fragment.value()].shared_config() : config_;
}

uint64_t CoordinatorState::LargestPush(FragmentId fragment, uint64_t elements) const {
  MutexLock lock(&mutex_);
  uint64_t largest = 0;
  for (const CodecKind codec : fragments_[fragment.value()].push_codecs()) {
    largest = std::max(largest, CodecFor(codec).EncodedSize(elements));
  }
  return largest;
}

uint32_t CoordinatorState::StalenessLimit() const {
  MutexLock lock(&mutex_);
  uint32_t limit = config_->run.round.staleness_limit;
  for (const FragmentRound& fragment : fragments_) {
    limit = std::max(limit, fragment.config().run.round.staleness_limit);
  }
  return limit;
}

void CoordinatorState::Configure(ConfigPtr config, Effects& effects) {
  MutexLock lock(&mutex_);
  config_ = std::move(config);
  members_.Configure(config_->run);
  statistics_.Configure(config_->run);
  evaluation_assignment_.Configure(config_->run.evaluated_by, config_->run.evaluation_every);
  for (FragmentRound& fragment : fragments_) fragment.Configure(config_);
  effects.rounds_changed = true;
}

std::vector<FragmentId> CoordinatorState::Restore(const Recovery& recovery,
                                                  const std::vector<FragmentLayout>& layouts,
                                                  const std::vector<OpenRoundConfig>& round_configs,
                                                  MonoTime now) {
  MutexLock lock(&mutex_);
  if (recovery.control) control_ = *recovery.control;
  std::vector<WorkerEntry> workers = recovery.workers;
  if (!recovery.manifest) {
    // Whose model may seed the run is known from a Join only, and is not on disk: all of them join again.
    for (WorkerEntry& worker : workers) worker.departed = true;
  }
  members_.Restore(workers, recovery.partitions, now);
  if (config_->run.inner.pace == InnerPace::kAdaptive) members_.assignments().LearnPace(recovery.rounds);
  statistics_.Restore(recovery.rounds, recovery.evaluations, layouts);
  RestoreOffences(recovery);
  for (const EvaluationEntry& evaluation : recovery.evaluations)
    evaluation_assignment_.Reported(evaluation.version);
  if (!recovery.manifest) return {};
  manifest_ = recovery.manifest;
  manifest_hash_ = ManifestHash(*manifest_);
  OpenRounds(layouts, now);
  // Workers went on while nobody closed rounds. Those that train on past a push do so into the round after
  // it.
  const bool in_step =
      config_->run.sync.mode == SyncMode::kBlocking && config_->run.round.mode == RoundMode::kBarrier;
  untimed_rounds_ = in_step ? 1 : 2;
  for (const RoundRecord& record : recovery.rounds) fragments_[record.fragment.value()].Committed(record);
  for (const FragmentRecovery& found : recovery.fragments) {
    FragmentRound& fragment = fragments_[found.fragment.value()];
    fragment.stored = found.stored;
    fragment.Reopen(found.head, round_configs[found.fragment.value()], members_.membership(), now);
    for (const Contribution& contribution : found.accepted) {
      fragment.Readmit(contribution, now);
      members_.assignments().Accepted(contribution, contribution.samples_consumed, now);
    }
  }
  std::vector<FragmentId> done = FinishCompleted(now);
  const FragmentRound& first = fragments_.front();
  std::set<WorkerName> asked;
  const bool by_worker = config_->run.evaluated_by == EvaluatedBy::kWorker;
  const WorkerRole role = by_worker ? WorkerRole::kTrainer : WorkerRole::kEvaluator;
  for (const WorkerEntry& worker : recovery.workers) {
    if (worker.role == static_cast<uint8_t>(role) && !worker.banned) asked.insert(worker.name);
  }
  evaluation_assignment_.Inherit(first.head(), first.finished(), asked);
  if (Finished()) end_announced_ = evaluation_assignment_.HasReport(first.head());
  return done;
}

void CoordinatorState::OpenRounds(const std::vector<FragmentLayout>& layouts, MonoTime now) {
  for (const FragmentLayout& layout : layouts) {
    FragmentRound& fragment = fragments_.emplace_back(layout, identity_.epoch, config_);
    fragment.Open(Version(0), members_.membership(), now);
  }
}

absl::Status CoordinatorState::Renew(const Caller& caller, MonoTime now, Effects& effects) {
  const bool deserted = members_.membership().live_count(WorkerRole::kTrainer) == 0;
  ATOLL_ASSIGN_OR_RETURN(const bool returned, members_.Renew(caller, now));
  if (!returned) return absl::OkStatus();
  effects.members.push_back(caller.worker);
  effects.Event(EventKind::kWorkerReturned, caller.worker,
                absl::StrFormat("worker '%s' is heard of again", caller.worker));
  effects.rounds_changed = true;
  const Member* member = members_.membership().Find(caller.worker);
  if (member->role == WorkerRole::kTrainer) {
    if (deserted) trained_since_ = now;
    for (FragmentRound& fragment : fragments_) {
      if (fragment.round()) fragment.round()->Revived(caller.worker, now, members_.membership());
    }
    RefreshGrant(effects);
  }
  return absl::OkStatus();
}

absl::Status CoordinatorState::CheckFragment(FragmentId fragment) const {
  const size_t count = fragments_.empty() ? options_.fragments : fragments_.size();
  if (fragment.value() < count) return absl::OkStatus();
  return Reject(RejectionReason::kWrongFragment,
                absl::StrFormat("there is no fragment %d; the run has %d", fragment.value(), count));
}

absl::Status CoordinatorState::CheckModel(const WorkerName& worker) const {
  const std::string hash = members_.manifest_hash(worker);
  if (manifest_hash_.empty() || hash.empty() || hash == manifest_hash_) return absl::OkStatus();
  return Reject(RejectionReason::kManifestMismatch,
                absl::StrFormat("the model of worker '%s' hashes to %s, that of the seeded run to %s", worker,
                                hash, manifest_hash_));
}

void CoordinatorState::RefreshGrant(Effects& effects) {
  if (manifest_) return;
  const WorkerName before = grant_.holder();
  if (!grant_.Refresh(members_.Seeders()) || before.empty()) return;
  effects.Event(
      EventKind::kUnknown, grant_.holder(),
      absl::StrFormat("worker '%s' is gone; worker '%s' is to seed the run now", before, grant_.holder()));
}

void CoordinatorState::SeedUploadAborted(const WorkerName& worker, Effects& effects) {
  MutexLock lock(&mutex_);
  if (manifest_ || !grant_.HeldBy(worker) || !grant_.UploadAborted(members_.Seeders())) return;
  effects.Event(EventKind::kUnknown, grant_.holder(),
                absl::StrFormat("the upload of the seed by worker '%s' broke off %d times; worker '%s' is to "
                                "seed the run now",
                                worker, SeedGrant::kUploads, grant_.holder()));
}

absl::Status CoordinatorState::CheckSeeder(const Caller& caller, MonoTime now, Effects& effects) {
  MutexLock lock(&mutex_);
  ATOLL_RETURN_IF_ERROR(Renew(caller, now, effects));
  if (control_.mode == RunMode::kStopped) return absl::FailedPreconditionError(ControlText());
  if (manifest_) {
    return absl::AlreadyExistsError(absl::StrFormat(
        "the run is seeded already; worker '%s' should pull version 0 or later", caller.worker));
  }
  if (grant_.HeldBy(caller.worker)) return absl::OkStatus();
  return Reject(
      Rejection{.reason = RejectionReason::kNotSeeded, .metadata = {}, .retry_after = options_.heartbeat},
      absl::StrFormat("worker '%s' does not hold the grant to seed; %s", caller.worker, SeedReason()));
}

bool CoordinatorState::seeded() const {
  MutexLock lock(&mutex_);
  return manifest_.has_value();
}

std::string CoordinatorState::ManifestHashOf(const WorkerName& worker) const {
  MutexLock lock(&mutex_);
  return members_.manifest_hash(worker);
}

void CoordinatorState::Seeded(const Manifest& manifest, const std::vector<FragmentLayout>& layouts,
                              const WorkerName& by, MonoTime now, Effects& effects) {
  MutexLock lock(&mutex_);
  manifest_ = manifest;
  manifest_hash_ = ManifestHash(manifest);
  OpenRounds(layouts, now);
  effects.Event(EventKind::kSeeded, by,
                absl::StrFormat("worker '%s' seeded %d parameters in %d tensors", by, manifest.elements(),
                                manifest.tensors.size()));
  effects.rounds_changed = true;
}

absl::Status CoordinatorState::CheckPull(const PullCall& call, MonoTime now, Effects& effects) {
  MutexLock lock(&mutex_);
  if (call.caller.observes()) {
    ATOLL_RETURN_IF_ERROR(members_.CheckRun(call.caller));
    return CheckFragment(call.fragment);
  }
  ATOLL_RETURN_IF_ERROR(Renew(call.caller, now, effects));
  ATOLL_RETURN_IF_ERROR(CheckFragment(call.fragment));
  return CheckModel(call.caller.worker);
}

void CoordinatorState::NoteLostVersions(const PullCall& call, Version head, MonoTime now, Effects& effects) {
  MutexLock lock(&mutex_);
  const WorkerName& worker = call.caller.worker;
  if (members_.membership().Find(worker) == nullptr || !members_.account(worker).rejections.Allow(now))
    return;
  effects.Event(EventKind::kReplicaDiverged, worker,
                absl::StrFormat(
                    "worker '%s' has version %d of fragment %d, whose head is %d: the data directory is an "
                    "older copy of itself, and the versions from %d to %d are lost; the worker goes on from "
                    "the head",
                    worker, call.after->value(), call.fragment.value(), head.value(), head.value() + 1,
                    call.after->value()));
  effects.events.back().fragment = call.fragment;
  effects.events.back().version = head;
}

uint32_t CoordinatorState::PlannedWorkers(const FragmentRound& fragment, MonoTime now) const {
  const auto active = static_cast<uint32_t>(members_.membership().ActiveTrainers().size());
  const bool gathering = fragment.round() != nullptr && fragment.round()->Gathering(now);
  // The first to pull version 0 must not take itself for the only one.
  if (gathering) return std::max({active, fragment.config().run.round.start_workers, 1U});
  if (fragment.head() == Version(0)) return std::max(active, 1U);
  // Fixed with the version, so that all who train on it are at the same learning rate.
  return std::max(fragment.active_at_open() > 0 ? fragment.active_at_open() : active, 1U);
}

void CoordinatorState::FillPlan(const Member& member, const FragmentRound& fragment, Version version,
                                MonoTime now, RoundPlanView& plan) {
  if (member.role != WorkerRole::kTrainer || fragment.finished()) return;
  if (fragment.layout().id != FragmentId(0)) {
    // The steps behind a contribution to another fragment are those of fragment 0's plan.
    if (const uint32_t steps = members_.assignments().steps(member.name); steps > 0) plan.inner_steps = steps;
    return;
  }
  const WorkAssignments::Assigned given =
      members_.assignments().Assign(member, version, fragment.config().run, members_.membership(), now);
  plan.inner_steps = given.steps;
  if (!given.go_to) return;
  plan.data = PartitionView{.partition = given.go_to->partition,
                            .partitions = config_->run.data.partitions,
                            .samples_consumed = given.go_to->position};
}

RoundPlanView CoordinatorState::Deliver(const WorkerName& worker, FragmentId id, Version version,
                                        uint64_t committed_tokens, MonoTime now) {
  MutexLock lock(&mutex_);
  FragmentRound& fragment = fragments_[id.value()];
  RoundPlanView plan{.inner_steps = fragment.config().run.inner.steps,
                     .active_workers = 1,
                     .committed_tokens = committed_tokens,
                     .total_tokens = config_->run.total_tokens()};
  const Member* member = members_.membership().Find(worker);
  if (member == nullptr) return plan;
  plan.active_workers = PlannedWorkers(fragment, now);
  FillPlan(*member, fragment, version, now, plan);
  if (version != fragment.head()) return plan;
  plan.config_version = fragment.config().version;
  if (PendingCommand& told = members_.account(worker).command; told.command == CommandView::kResync) {
    told = PendingCommand{};  // it has the head now
  }
  if (Round* round = fragment.round(); round != nullptr) {
    if (member->role == WorkerRole::kTrainer) round->Pulled(worker);
    const RoundView view = round->View(now, members_.membership());
    const MonoTime start = view.gathering ? now : view.started_at;
    plan.deadline = std::max(Duration(0), start + fragment.config().run.round.deadline - now);
  }
  if (id == FragmentId(0)) {
    plan.evaluate = evaluation_assignment_.Assign(worker, member->role, version, fragment.finished(),
                                                  members_.Live(WorkerRole::kTrainer));
  }
  return plan;
}

}  // namespace atl
