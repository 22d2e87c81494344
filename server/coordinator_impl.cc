#include "server/coordinator_impl.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/status.h"
#include "server/admin/metrics_view.h"
#include "server/ingest/push_upload.h"
#include "server/ingest/seed_upload.h"
#include "server/rejection.h"
#include "server/storage_rejection.h"

namespace atl {
namespace {

constexpr Duration kLongestPull = Seconds(60);

CoordinatorStateOptions StateOptions(const ServingOptions& options, const OpenedRun& opened) {
  return {
      .config = opened.config,
      .earlier_configs = opened.earlier_configs,
      .identity = opened.recovery.identity,
      .fragments = opened.layouts.empty() ? options.fragments : static_cast<uint32_t>(opened.layouts.size()),
      .heartbeat = options.heartbeat,
      .final_evaluation_wait = options.final_evaluation_wait,
      .max_ranks = options.max_ranks};
}

/// Adds why the launcher's workers do not run to what the run waits for. Without any worker it belongs to the
/// reason of the run's state: nobody else is about to join.
void AddLauncherTrouble(const std::string& error, StatusView& status) {
  if (error.empty() || status.state == RunState::kFinished || status.state == RunState::kStopped) {
    return;
  }
  const std::string trouble =
      absl::StrCat("the launcher: ", error, "; `atollctl launcher` shows its workers");
  const std::string reason = status.state_reason;
  bool told = false;
  if (status.live_trainers == 0 && status.state != RunState::kPaused && !reason.empty()) {
    absl::StrAppend(&status.state_reason, "; ", trouble);
    for (WaitView& wait : status.waiting) {
      if (!absl::EndsWith(wait.what, reason)) continue;
      absl::StrAppend(&wait.what, "; ", trouble);
      told = true;
    }
    for (FragmentStatusView& fragment : status.fragments) {
      if (fragment.waiting_for == reason) fragment.waiting_for = status.state_reason;
    }
  }
  if (!told) status.waiting.push_back({.what = trouble, .from = {}});
}

}  // namespace

CoordinatorImpl::CoordinatorImpl(ServingOptions options, CoordinatorDeps deps,
                                 std::unique_ptr<MergeEngine> engine, OpenedRun opened)
    : store_(std::move(deps.store)),
      engine_(std::move(engine)),
      observer_(deps.observer != nullptr ? deps.observer : &silent_),
      state_(StateOptions(options, opened)),
      published_versions_(opened.layouts.empty() ? options.fragments
                                                 : static_cast<uint32_t>(opened.layouts.size())),
      events_(store_.get(), deps.clock, deps.log.With("component", "events"), observer_,
              opened.recovery.last_event_sequence),
      budget_("contributions in flight", opened.config->run.contribution_budget_bytes),
      effect_executor_(store_.get(), &state_, &events_, observer_, deps.log.With("component", "run")),
      confirmations_(store_.get(), deps.log.With("component", "confirmations")),
      context_(MakeContext(std::move(options), deps, opened)),
      started_(context_.clock->Now()),
      driver_(context_, engine_.get()),
      checkpoints_(context_, &driver_),
      launcher_(std::move(deps.launcher)),
      admin_({.context = &context_,
              .keeper = &checkpoints_,
              .driver = &driver_,
              .launcher = launcher_.get(),
              .config_codec = deps.config_codec,
              .configs = opened.recovery.configs}) {
  Start(std::move(opened));
}

CoordinatorContext CoordinatorImpl::MakeContext(ServingOptions options, const CoordinatorDeps& deps,
                                                const OpenedRun& opened) {
  return {.options = std::move(options),
          .identity = opened.recovery.identity,
          .store = store_.get(),
          .clock = deps.clock,
          .observer = observer_,
          .state = &state_,
          .published_versions = &published_versions_,
          .effect_executor = &effect_executor_,
          .budget = &budget_,
          .shutting_down = &shutting_down_,
          .log = deps.log.With("component", "rounds")};
}

void CoordinatorImpl::Start(OpenedRun opened) {
  effect_executor_.WakeRoundsBy([this] { driver_.Wake(); });
  effect_executor_.OnForgotten([this](const WorkerName& name) { confirmations_.Forget(name); });
  driver_.OnStored(
      [this](FragmentId fragment, Version version) { checkpoints_.VersionStored(fragment, version); });
  const std::vector<FragmentId> finished =
      state_.Restore(opened.recovery, opened.layouts, opened.round_configs, started_);
  store_->KeepLate(state_.settings().StalenessLimit());
  budget_.SetCapacity(state_.settings().ContributionBudget());
  confirmations_.Restore(opened.recovery.rounds);
  published_versions_.OnFirst([this](const Snapshot& snapshot) {
    confirmations_.Published(snapshot.fragment, snapshot.version, snapshot.published);
  });
  Effects effects;
  const bool seeded = !opened.fragments.empty();
  effects.Event(EventKind::kCoordinatorStarted, "",
                seeded
                    ? absl::StrFormat("the coordinator serves run '%s' from version %d",
                                      opened.recovery.identity.name, opened.fragments.front().version.value())
                    : absl::StrFormat("the coordinator serves run '%s', which has no parameters yet",
                                      opened.recovery.identity.name));
  if (seeded) effects.events.back().version = opened.fragments.front().version;
  if (!opened.config_changed.empty()) {
    effects.Event(EventKind::kConfigChanged, "", opened.config_changed);
  }
  if (opened.recovery.checkpoint) {
    effects.Event(EventKind::kRunRestored, "",
                  absl::StrFormat("the run goes on from checkpoint '%s' under a new epoch",
                                  opened.recovery.checkpoint->name));
    effects.events.back().version = opened.fragments.front().version;
  }
  (void)effect_executor_.Execute(effects);
  checkpoints_.ReportNewest();
  if (state_.control().control().mode == RunMode::kPaused) published_versions_.Hold();
  if (seeded) {
    std::vector<Version> stored;
    for (const FragmentRecovery& fragment : opened.recovery.fragments) stored.push_back(fragment.stored);
    driver_.Adopt(std::move(opened.fragments), stored);
    for (const FragmentId fragment : finished) published_versions_.Finish(fragment);
  }
  housekeeping_ = std::make_unique<PeriodicTask>("ticks", context_.options.tick, [this] { Tick(); });
  FollowLauncher();
}

void CoordinatorImpl::FollowLauncher() {
  if (launcher_ == nullptr) return;
  launcher_->SetEventSink([this](const Launcher::Event& event) {
    Effects effects;
    effects.Event(event.launched ? EventKind::kWorkerLaunched : EventKind::kWorkerExited, event.name,
                  event.message);
    (void)effect_executor_.Execute(effects);
  });
  launcher_->SetMembers([this](const WorkerName& name) { return state_.members().IsLiveTrainer(name); });
}

CoordinatorImpl::~CoordinatorImpl() { Shutdown(); }

absl::Status CoordinatorImpl::CheckOpen() const { return shutting_down_ ? ShuttingDown() : absl::OkStatus(); }

absl::StatusOr<JoinReply> CoordinatorImpl::Join(const JoinCall& call) {
  ATOLL_RETURN_IF_ERROR(CheckOpen());
  Effects effects;
  auto result = state_.members().Join(call, context_.clock->Now(), effects);
  const absl::Status stored = effect_executor_.Execute(effects);
  if (!result.ok()) return result;
  // An incarnation that is not on disk could be issued again after a crash.
  if (!stored.ok()) return ToRejection(stored);
  result->last_event_sequence = events_.last_sequence();
  return result;
}

absl::StatusOr<HeartbeatReply> CoordinatorImpl::Heartbeat(const MemberRef& caller,
                                                          const HeartbeatCall& call) {
  ATOLL_RETURN_IF_ERROR(CheckOpen());
  Effects effects;
  auto result = state_.members().Heartbeat(caller, call, context_.clock->Now(),
                                           context_.clock->WallNow().time_since_epoch().count(), effects);
  if (result.ok() && !caller.observes()) CheckConfirmations(caller, call.confirmations, *result, effects);
  (void)effect_executor_.Execute(effects);
  return result;
}

void CoordinatorImpl::CheckConfirmations(const MemberRef& caller,
                                         const std::vector<Confirmation>& confirmations,
                                         HeartbeatReply& result, Effects& effects) {
  if (confirmations.empty()) return;
  const Confirmations::Result heard =
      confirmations_.Take({.run_id = caller.run_id, .epoch = caller.epoch, .worker = caller.worker},
                          state_.members().PublicKey(caller.worker), confirmations, context_.clock->Now());
  effects.events.insert(effects.events.end(), heard.events.begin(), heard.events.end());
  for (const ConfirmationVerdict verdict : heard.verdicts) observer_->OnConfirmation(VerdictName(verdict));
  // Who is to leave anyway takes no diverged parameters along.
  if (!heard.diverged || result.command != WorkerCommand::kNone) return;
  const PendingCommand resync{.command = WorkerCommand::kResync};
  if (state_.member_actions().SetCommand(caller.worker, resync, effects).ok())
    result.command = resync.command;
}

absl::Status CoordinatorImpl::Leave(const MemberRef& caller, const std::string& reason) {
  ATOLL_RETURN_IF_ERROR(CheckOpen());
  Effects effects;
  const absl::Status left = state_.members().Leave(caller, reason, context_.clock->Now(), effects);
  (void)effect_executor_.Execute(effects);
  if (left.ok() && launcher_ != nullptr) launcher_->Left(caller.worker);
  return left;
}

absl::StatusOr<std::unique_ptr<SeedSession>> CoordinatorImpl::StartSeed(const MemberRef& caller,
                                                                        const Manifest& manifest) {
  ATOLL_RETURN_IF_ERROR(CheckOpen());
  return SeedUpload::Start(context_, caller, manifest, [this](std::vector<FragmentState> fragments) {
    const std::vector<Version> stored(fragments.size(), Version(0));
    driver_.Adopt(std::move(fragments), stored);
  });
}

absl::StatusOr<std::unique_ptr<PushSession>> CoordinatorImpl::StartPush(const MemberRef& caller,
                                                                        const PushHeader& header) {
  return PushUpload::Start(context_, caller, header);
}

uint64_t CoordinatorImpl::StagedBytes(const MemberRef& caller, const PushKey& key) {
  const SnapshotPtr head = published_versions_.Head(key.fragment);
  if (head == nullptr) return 0;
  // A query: it claims no key, creates no file and takes nothing of the budget.
  // Left by an upload of another size, the file is of no use.
  const uint64_t staged = store_->StagedBytes(ContributionKeyOf(caller, key));
  return staged <= state_.settings().LargestPush(key.fragment, head->elements) ? staged : 0;
}

absl::StatusOr<PushStatusReply> CoordinatorImpl::GetPushStatus(const MemberRef& caller, const PushKey& key) {
  ATOLL_RETURN_IF_ERROR(CheckOpen());
  Effects effects;
  auto result = state_.contributions().PushStatus(caller, key, context_.clock->Now(), effects);
  (void)effect_executor_.Execute(effects);
  if (!result.ok() || result->stage != PushStage::kUnknown || key.base > result->head) return result;
  result->received_bytes = StagedBytes(caller, key);
  if (result->received_bytes > 0) result->stage = PushStage::kPartial;
  return result;
}

absl::StatusOr<ConfirmationPage> CoordinatorImpl::GetConfirmations(const ConfirmationQuery& query) {
  ATOLL_RETURN_IF_ERROR(CheckOpen());
  const size_t fragments = state_.settings().Layouts().size();
  if (query.fragment.value() >= fragments) {
    return absl::NotFoundError(
        absl::StrFormat("there is no fragment %d; the run has %d", query.fragment.value(), fragments));
  }
  return confirmations_.Show(context_.identity, query,
                             [this](const WorkerName& worker) { return state_.members().PublicKey(worker); });
}

absl::StatusOr<PullResult> CoordinatorImpl::Answer(const MemberRef& caller, const PullCall& call,
                                                   PublishedVersions::Outcome outcome, SnapshotPtr snapshot) {
  PullResult result;
  result.state = state_.views().state();
  switch (outcome) {
    case PublishedVersions::Outcome::kSnapshot:
      if (caller.epoch != snapshot->epoch) return WrongEpoch(caller.worker, caller.epoch, snapshot->epoch);
      result.outcome = PullOutcome::kParameters;
      result.zstd = call.zstd && context_.config()->run.zstd;
      if (call.have) result.delta = published_versions_.DeltaFrom(call.fragment, *call.have);
      if (result.delta != nullptr && result.delta->to != snapshot->version) {
        result.snapshot = std::move(snapshot);
        return result;
      }
      // An observer's name may be a worker's: it is not that worker that pulled.
      result.plan =
          state_.pulls().Deliver(caller.observes() ? WorkerName() : caller.worker, call.fragment,
                                 snapshot->version, snapshot->committed_tokens, context_.clock->Now());
      result.snapshot = std::move(snapshot);
      return result;
    case PublishedVersions::Outcome::kTimeout:
      result.outcome = PullOutcome::kNotYet;
      result.waiting_for = state_.waits().WaitingFor(call.fragment);
      return result;
    case PublishedVersions::Outcome::kFinished:
      result.outcome = PullOutcome::kRunFinished;
      return result;
    case PublishedVersions::Outcome::kCancelled:
      return absl::CancelledError("the pull was cancelled by its caller");
    case PublishedVersions::Outcome::kClosed:
      break;
  }
  return ShuttingDown();
}

uint64_t CoordinatorImpl::Pull(const MemberRef& caller, const PullCall& call, PullDone done) {
  Effects effects;
  absl::Status admitted = CheckOpen();
  const MonoTime now = context_.clock->Now();
  if (admitted.ok()) admitted = state_.pulls().CheckPull(caller, call.fragment, now, effects);
  if (admitted.ok() && call.after.has_value() && !caller.observes()) {
    const SnapshotPtr head = published_versions_.Head(call.fragment);
    if (head != nullptr && head->version < *call.after) {
      state_.pulls().NoteLostVersions(caller.worker, call.fragment, *call.after, head->version, now, effects);
    }
  }
  (void)effect_executor_.Execute(effects);
  if (!admitted.ok()) {
    done(admitted);
    return 0;
  }
  const Duration wait = std::clamp(call.wait, Duration(0), kLongestPull);
  return published_versions_.Wait(
      call.fragment, call.after, now, now + wait,
      [this, caller, call, done = std::move(done)](PublishedVersions::Outcome outcome, SnapshotPtr snapshot) {
        done(Answer(caller, call, outcome, std::move(snapshot)));
      },
      !caller.observes() && state_.members().IsTrainer(caller.worker));
}

void CoordinatorImpl::CancelPull(uint64_t id) { published_versions_.Cancel(id); }

void CoordinatorImpl::CountPulledBytes(const WorkerName& worker, uint64_t bytes) {
  state_.pulls().CountPull(worker, bytes);
  observer_->OnPullBytes(bytes);
}

uint64_t CoordinatorImpl::Subscribe(uint64_t after_sequence, EventSink sink) {
  return events_.Subscribe(after_sequence, std::move(sink));
}

void CoordinatorImpl::Unsubscribe(uint64_t id) { events_.Unsubscribe(id); }

StatusView CoordinatorImpl::GetStatus(uint32_t history) {
  const MonoTime now = context_.clock->Now();
  StatusView status = state_.views().Status(history, now);
  status.uptime_s = ToSeconds(now - started_);
  status.run_seconds = RunSeconds(status, context_.identity.created_unix_ns,
                                  context_.clock->WallNow().time_since_epoch().count());
  status.compute_utilisation =
      ComputeUtilisation(state_.views().Workers(/*all=*/status.live_trainers == 0, now), status.run_seconds);
  status.data_directory = context_.options.data_directory;
  status.last_event_sequence = events_.last_sequence();
  for (FragmentStatusView& fragment : status.fragments) {
    const SnapshotPtr head = published_versions_.Head(fragment.id);
    if (head != nullptr && head->version == fragment.version) fragment.published = head->published;
  }
  if (launcher_ != nullptr) AddLauncherTrouble(launcher_->view().error, status);
  return status;
}

std::vector<WorkerView> CoordinatorImpl::ListWorkers(bool all) {
  std::vector<WorkerView> workers = state_.views().Workers(all, context_.clock->Now());
  for (WorkerView& worker : workers) worker.confirmed = confirmations_.Newest(worker.name);
  return workers;
}

void CoordinatorImpl::Tick() {
  const MonoTime now = context_.clock->Now();
  Effects effects;
  state_.Tick(now, effects);
  for (const FragmentId fragment : state_.progress().FinishEnded(now)) published_versions_.Finish(fragment);
  (void)effect_executor_.Execute(effects);
  EndUnresponsive(effects, now);
  published_versions_.Expire(now);
  ShowNumbers();
}

void CoordinatorImpl::EndUnresponsive(const Effects& effects, MonoTime now) {
  if (launcher_ == nullptr) return;
  for (const EventView& event : effects.events) {
    if (event.kind != EventKind::kWorkerLost) continue;
    const auto worker = state_.member_actions().Worker(event.worker, now);
    if (!worker.ok()) continue;
    const bool restart = worker->pending_command == WorkerCommand::kRestart;
    if (restart || worker->pending_command == WorkerCommand::kDrain) launcher_->Lost(event.worker, restart);
  }
}

void CoordinatorImpl::ShowNumbers() {
  const StatusViews::Numbers numbers = state_.views().numbers();
  observer_->OnWorkers(numbers.active_trainers, numbers.live_others, numbers.lost);
  observer_->OnRunState(numbers.state);
  observer_->OnCommittedTokens(numbers.committed_tokens, numbers.total_tokens);
  observer_->OnStorageFailing(!numbers.storage_error.empty());
  observer_->OnConfigVersion(state_.settings().config()->version);
  observer_->OnContributionBudget(budget_.used(), budget_.capacity());
  for (const FragmentStatusView& fragment : numbers.fragments) {
    observer_->OnVersion(fragment.id, fragment.version, fragment.stored);
  }
}

void CoordinatorImpl::Shutdown() {
  shutting_down_ = true;
  MutexLock lock(&shutdown_mutex_);
  if (shut_down_) return;
  shut_down_ = true;
  published_versions_.Close();
  if (launcher_ != nullptr) launcher_->Shutdown();
  housekeeping_->Stop();
  driver_.Stop();
  checkpoints_.Stop();
  events_.Stop();
}

absl::StatusOr<std::unique_ptr<Coordinator>> CreateCoordinator(CoordinatorOptions options,
                                                               CoordinatorDeps deps) {
  if (deps.store == nullptr || deps.clock == nullptr) {
    return absl::InvalidArgumentError("a coordinator needs a store and a clock");
  }
  if (options.fragments == 0) options.fragments = options.run.sync.fragments;
  if (options.fragments == 0 || options.run.shards == 0 || options.run.total_tokens() == 0) {
    return absl::InvalidArgumentError("the run's fragments, shards and token budget must be above 0");
  }
  const bool heartbeat_by_lease = options.heartbeat <= Duration(0);
  if (options.merge_threads == 0) {
    options.merge_threads = std::max(1U, std::min(options.run.shards, std::thread::hardware_concurrency()));
  }
  auto engine =
      std::make_unique<MergeEngine>(options.merge_threads, options.run.pull_codec, options.run.pull_delta);
  ATOLL_ASSIGN_OR_RETURN(OpenedRun opened, OpenRun(options, deps, *engine));
  // From here on only the recorded configuration counts, not that of the file.
  ServingOptions serving = std::move(options);
  if (heartbeat_by_lease) serving.heartbeat = opened.config->run.round.lease / 3;
  return std::make_unique<CoordinatorImpl>(std::move(serving), std::move(deps), std::move(engine),
                                           std::move(opened));
}

}  // namespace atl
