#include "server/rounds/round_driver.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/fault_point.h"
#include "common/planted_defect.h"
#include "common/thread.h"
#include "core/merge.h"
#include "server/rounds/recover_fragments.h"

namespace atl {
namespace {

/// How often WhilePaused looks whether a version has been written.
constexpr Duration kStoringLook = Seconds(0.002);

}  // namespace

RoundDriver::RoundDriver(const CoordinatorContext& context, MergeEngine* engine)
    : context_(context),
      engine_(engine),
      version_writer_(context),
      task_("rounds", context.options.tick, [this] { Step(); }) {}

RoundDriver::~RoundDriver() { Stop(); }

void RoundDriver::Adopt(std::vector<FragmentState> fragments, const std::vector<Version>& stored) {
  std::vector<std::unique_ptr<FragmentDriver>> drivers;
  // Not the driver's engine: this may run on the thread of a seeding call.
  const ConfigPtr config = context_.config();
  MergeEngine engine(1, config->run.pull_codec, config->run.pull_delta);
  for (size_t i = 0; i < fragments.size(); ++i) {
    auto driver = std::make_unique<FragmentDriver>();
    driver->state = std::move(fragments[i]);
    const ComputedVersion published = engine.Publish(driver->state);
    published.snapshot->committed_tokens = context_.state->rounds().TokensAfter(driver->state.layout.id, {});
    context_.published_versions->Publish(published.snapshot);
    if (stored[i] < driver->state.version) Store(*driver, published.snapshot);
    drivers.push_back(std::move(driver));
  }
  {
    MutexLock lock(&mutex_);
    adopted_ = std::move(drivers);
  }
  Wake();
}

void RoundDriver::Stop() {
  task_.Stop();
  version_writer_.Stop();
}

absl::Status RoundDriver::WhilePaused(Duration timeout, const std::function<void()>& work) {
  const auto deadline = SteadyNow() + timeout;
  MutexLock nothing_happens(&stepping_);
  const auto storing = [this] {
    return std::ranges::any_of(drivers_, [](const auto& driver) { return driver->storing.load(); });
  };
  for (; storing(); SleepThisThread(kStoringLook)) {
    if (const std::string error = context_.state->views().numbers().storage_error; !error.empty()) {
      return absl::UnavailableError(
          absl::StrFormat("%s. Make room in the data directory, for example with `atollctl checkpoint "
                          "delete`, then try again",
                          error));
    }
    if (SteadyNow() < deadline) continue;
    return absl::UnavailableError(
        "the tensors of the newest version are still being written; try again later");
  }
  work();
  return absl::OkStatus();
}

void RoundDriver::BetweenSteps(const std::function<void()>& work) {
  MutexLock nothing_happens(&stepping_);
  work();
}

void RoundDriver::Step() {
  MutexLock step(&stepping_);
  {
    MutexLock lock(&mutex_);
    if (!adopted_.empty()) drivers_ = std::exchange(adopted_, {});
  }
  for (const auto& driver : drivers_) StepFragment(*driver);
}

void RoundDriver::StepFragment(FragmentDriver& driver) {
  const FragmentId id = driver.state.layout.id;
  const MonoTime now = context_.clock->Now();
  if (driver.halted || now < driver.retry_at) return;
  if (driver.pending) return Commit(driver);
  Effects effects;
  const RoundDecision decision = context_.state->rounds().Decide(id, now, effects);
  (void)context_.effect_executor->Execute(effects);
  if (decision.action != RoundDecision::Action::kClose) return;
  // The state is updated in place: the version before must be on disk first. Until then the round stays
  // open, and contributions that arrive meanwhile still count.
  if (driver.storing) return context_.state->rounds().AwaitStorage(id);
  // Not there yet while an acceptance is in flight; its end wakes this thread.
  auto closed = context_.state->rounds().BeginClose(id, now);
  if (closed) MergeFragment(driver, *std::move(closed));
}

void RoundDriver::MergeFragment(FragmentDriver& driver, ClosedRound closed) {
  std::vector<Contribution>& contributions = closed.contributions;
  if (contributions.empty()) {
    driver.halted = true;
    context_.state->faults().SetFault(
        absl::StrFormat("no contribution to version %d of fragment %d can be merged: all of them overflow; "
                        "the run has diverged: "
                        "lower the learning rates and restart the coordinator",
                        driver.state.version.value(), driver.state.layout.id.value()));
    context_.log.Error("every contribution of the round overflows; the run is halted");
    return;
  }
  if (Planted(PlantedDefect::kSumsByArrival)) std::ranges::reverse(contributions);
  if (Planted(PlantedDefect::kCountsTwice)) contributions.push_back(contributions.back());
  if (Planted(PlantedDefect::kLeavesOneOut) && contributions.size() > 2) contributions.pop_back();
  FaultPoint("merge.begin");
  const MonoTime started = context_.clock->Now();
  std::vector<float> weights =
      NormalisedWeights(closed.config->run.merge.weights, contributions, driver.state.version);
  const auto mapped = MapInputs(*context_.store, contributions, weights);
  // What a disk has changed since it was accepted must not get into a version.
  const absl::Status whole = mapped.ok() ? CheckPayloads(*mapped, contributions, *engine_) : mapped.status();
  if (!whole.ok()) {
    ReportStorage(driver, absl::StrFormat("contributions cannot be read back: %s; trying again",
                                          std::string(whole.message())));
    driver.retry_at = started + context_.options.storage_retry;
    return;
  }
  const RunOptions& run = closed.config->run;
  MergeFindings findings;
  auto computed =
      engine_->Step(mapped->inputs, run.merge, run.outer, driver.state, &findings, run.offenders.measures());
  if (!computed.ok()) {
    if (Overflowed(driver, contributions, computed.status())) Wake();
    return;
  }
  context_.observer->OnMergeSeconds(ToSeconds(context_.clock->Now() - started));
  std::vector<double> norms;
  for (const Contribution& contribution : contributions) norms.push_back(contribution.norm);
  context_.observer->OnMergedNorms(norms, run.merge.norm_guard);
  Prepare(driver, std::move(closed), std::move(weights), findings, *std::move(computed));
  FaultPoint("merge.done");
  Commit(driver);
}

bool RoundDriver::Overflowed(FragmentDriver& driver, const std::vector<Contribution>& contributions,
                             const absl::Status& why) {
  // The state was updated in place and is worthless now; the version it belonged to is on disk.
  auto restored = LoadFragment(*context_.store, engine_->delta_pulls(), driver.state.epoch,
                               driver.state.layout, driver.state.version);
  if (!restored.ok()) {
    driver.halted = true;
    context_.state->faults().SetFault(absl::StrFormat(
        "version %d of fragment %d cannot be read back after an overflow: %s; restart the coordinator",
        driver.state.version.value(), driver.state.layout.id.value(),
        std::string(restored.status().message())));
    return false;
  }
  driver.state.state = std::move(restored->state);
  const auto largest = std::ranges::max_element(contributions, {}, &Contribution::norm);
  Effects effects;
  context_.state->rounds().Exclude(
      driver.state.layout.id, *largest,
      absl::StrFormat(
          "the merge overflows (%s); the contribution of worker '%s', the largest with norm %g, is left "
          "out",
          std::string(why.message()), largest->key.worker, largest->norm),
      effects);
  (void)context_.effect_executor->Execute(effects);
  return true;
}

void RoundDriver::Prepare(FragmentDriver& driver, ClosedRound closed, std::vector<float> weights,
                          const MergeFindings& findings, ComputedVersion computed) {
  const RunOptions& run = closed.config->run;
  Pending& pending = driver.pending.emplace();
  RoundRecord& record = pending.record;
  record.epoch = driver.state.epoch;
  record.fragment = driver.state.layout.id;
  record.version = Next(driver.state.version);
  record.outer_steps = driver.state.outer_steps + 1;
  record.config_version = closed.config->version;
  record.outer = run.outer;
  record.merge = run.merge;
  record.committed_tokens = context_.state->rounds().TokensAfter(record.fragment, closed.contributions);
  record.closed_unix_ns = context_.clock->WallNow().time_since_epoch().count();
  record.close_reason = closed.reason;
  record.noise_multiplier = run.privacy.noisy() ? run.privacy.noise_multiplier : 0;
  record.audits = context_.state->rounds().Audit(record.fragment, closed.contributions, findings);
  record.parameters = computed.hashes.parameters;
  record.state = computed.hashes.state;
  record.published = computed.hashes.published;
  record.weights = std::move(weights);
  pending.partitions = context_.state->rounds().PartitionsAfter(record.fragment, closed.contributions);
  record.contributions = std::move(closed.contributions);
  pending.computed = std::move(computed);
  pending.computed.snapshot->committed_tokens = record.committed_tokens;
}

void RoundDriver::Commit(FragmentDriver& driver) {
  Pending& pending = *driver.pending;
  const MonoTime started = context_.clock->Now();
  // Before the head moves: who is in the middle of sending something late may go on with it. The next round
  // may take what is later than this one does, and so may those of other fragments.
  context_.store->KeepLate(context_.state->settings().StalenessLimit());
  context_.budget->SetCapacity(context_.state->settings().ContributionBudget());
  if (Planted(PlantedDefect::kPublishesTooEarly)) {
    context_.published_versions->Publish(pending.computed.snapshot);
  }
  const absl::Status committed = context_.store->CommitRound(pending.record, pending.partitions);
  if (!committed.ok()) {
    ReportStorage(
        driver, absl::StrFormat("version %d of fragment %d is computed, but cannot be committed: %s; it is "
                                "kept in memory and tried again every %.1f s",
                                pending.record.version.value(), pending.record.fragment.value(),
                                std::string(committed.message()), ToSeconds(context_.options.storage_retry)));
    driver.retry_at = started + context_.options.storage_retry;
    return;
  }
  context_.observer->OnCommitSeconds(ToSeconds(context_.clock->Now() - started));
  const Pending done = *std::exchange(driver.pending, std::nullopt);
  Published(driver, done);
}

void RoundDriver::Published(FragmentDriver& driver, const Pending& pending) {
  ReportStorage(driver, "");
  driver.state.theta = pending.computed.theta;
  driver.state.published = pending.computed.published;
  driver.state.version = pending.record.version;
  driver.state.outer_steps = pending.record.outer_steps;
  const MonoTime now = context_.clock->Now();
  Effects effects;
  const std::vector<FragmentId> finished = context_.state->rounds().Committed(pending.record, now, effects);
  FaultPoint("publish.begin");
  context_.published_versions->Publish(pending.computed.snapshot);
  FaultPoint("publish.done");
  for (const FragmentId fragment : finished) context_.published_versions->Finish(fragment);
  Store(driver, pending.computed.snapshot);
  (void)context_.effect_executor->Execute(effects);
}

void RoundDriver::Store(FragmentDriver& driver, const SnapshotPtr& published) {
  driver.storing = true;
  version_writer_.Store(&driver.state, published, [this, &driver] {
    const FragmentId fragment = driver.state.layout.id;
    const Version version = driver.state.version;
    driver.storing = false;  // from here on the driver may be gone
    Wake();
    if (on_stored_) on_stored_(fragment, version);
  });
}

void RoundDriver::ReportStorage(const FragmentDriver& driver, const std::string& error) {
  Effects effects;
  context_.state->faults().SetStorageError(
      absl::StrFormat("rounds of fragment %d", driver.state.layout.id.value()), error, context_.clock->Now(),
      effects);
  (void)context_.effect_executor->Execute(effects);
}

}  // namespace atl
