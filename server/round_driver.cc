#include "server/round_driver.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/fault_point.h"
#include "core/merge.h"
#include "server/recover_fragments.h"

namespace atoll {

RoundDriver::RoundDriver(const Services& services, MergeEngine* engine)
    : services_(services),
      engine_(engine),
      storer_(services),
      task_("rounds", services.options.tick, [this] { Step(); }) {}

RoundDriver::~RoundDriver() { Stop(); }

void RoundDriver::Adopt(std::vector<FragmentState> fragments, const std::vector<Version>& stored) {
  std::vector<std::unique_ptr<Lane>> lanes;
  // Not the driver's engine: this may run on the thread of a seeding call.
  MergeEngine engine(1, services_.options.run.pull_codec, services_.options.run.pull_delta);
  for (size_t i = 0; i < fragments.size(); ++i) {
    auto lane = std::make_unique<Lane>();
    lane->state = std::move(fragments[i]);
    const ComputedVersion published = engine.Publish(lane->state);
    published.snapshot->committed_tokens = services_.book->TokensAfter(lane->state.layout.id, {});
    services_.board->Publish(published.snapshot);
    if (stored[i] < lane->state.version) Store(*lane, published.snapshot);
    lanes.push_back(std::move(lane));
  }
  {
    MutexLock lock(&mutex_);
    adopted_ = std::move(lanes);
  }
  Wake();
}

void RoundDriver::Stop() {
  task_.Stop();
  storer_.Stop();
}

absl::Status RoundDriver::WhilePaused(Duration patience, const std::function<void()>& work) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  MutexLock nothing_happens(&stepping_);
  const auto storing = [this] {
    return std::ranges::any_of(lanes_, [](const auto& lane) { return lane->storing.load(); });
  };
  for (; storing(); std::this_thread::sleep_for(std::chrono::milliseconds(2))) {
    if (const std::string error = services_.book->numbers().storage_error; !error.empty()) {
      return absl::UnavailableError(
          absl::StrFormat("%s. Make room in the data directory, for example with `atollctl checkpoint "
                          "delete`, then try again",
                          error));
    }
    if (std::chrono::steady_clock::now() < deadline) continue;
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
    if (!adopted_.empty()) lanes_ = std::exchange(adopted_, {});
  }
  for (const auto& lane : lanes_) StepLane(*lane);
}

void RoundDriver::StepLane(Lane& lane) {
  const FragmentId id = lane.state.layout.id;
  const MonoTime now = services_.clock->Now();
  if (lane.halted || now < lane.retry_at) return;
  if (lane.pending) return Commit(lane);
  if (!lane.closing) {
    Effects effects;
    const RoundDecision decision = services_.book->Decide(id, now, effects);
    (void)services_.outbox->Send(effects);
    if (decision.action != RoundDecision::Action::kClose) return;
    // The state is updated in place: the version before must be on disk first. Until then the round stays
    // open, and whoever comes meanwhile is still counted.
    if (lane.storing) return services_.book->AwaitStorage(id);
    lane.closing = true;
    lane.close_reason = decision.reason;
    lane.config = services_.book->RoundConfig(id);
    lane.closed_at = now;
  }
  // Not there yet while an acceptance is in flight; its end wakes this thread.
  auto contributions = services_.book->BeginClose(id);
  if (contributions) MergeLane(lane, *std::move(contributions));
}

void RoundDriver::MergeLane(Lane& lane, std::vector<Contribution> contributions) {
  if (contributions.empty()) {
    lane.halted = true;
    services_.book->SetFault(
        absl::StrFormat("no contribution to version %d of fragment %d can be merged: all of them overflow; "
                        "the run has diverged: "
                        "lower the learning rates and restart the coordinator",
                        lane.state.version.value(), lane.state.layout.id.value()));
    services_.log.Error("every contribution of the round overflows; the run is halted");
    return;
  }
  FaultPoint("merge.begin");
  const MonoTime started = services_.clock->Now();
  std::vector<float> weights =
      NormalisedWeights(lane.config->run.merge.weights, contributions, lane.state.version);
  const auto mapped = MapInputs(*services_.store, contributions, weights);
  // What a disk has changed since it was accepted must not get into a version.
  const absl::Status whole = mapped.ok() ? CheckPayloads(*mapped, contributions, *engine_) : mapped.status();
  if (!whole.ok()) {
    ReportStorage(lane, absl::StrFormat("contributions cannot be read back: %s; trying again",
                                        std::string(whole.message())));
    lane.retry_at = started + services_.options.storage_retry;
    return;
  }
  const RunOptions& run = lane.config->run;
  auto computed = engine_->Step(mapped->inputs, run.merge, run.outer, lane.state, &lane.findings,
                                run.offenders.measures());
  if (!computed.ok()) {
    if (Overflowed(lane, contributions, computed.status())) Wake();
    return;
  }
  services_.observer->OnMergeSeconds(ToSeconds(services_.clock->Now() - started));
  std::vector<double> norms;
  for (const Contribution& contribution : contributions) norms.push_back(contribution.norm);
  services_.observer->OnMergedNorms(norms, lane.config->run.merge.norm_guard);
  Prepare(lane, std::move(contributions), std::move(weights), *std::move(computed));
  FaultPoint("merge.done");
  Commit(lane);
}

bool RoundDriver::Overflowed(Lane& lane, const std::vector<Contribution>& contributions,
                             const absl::Status& why) {
  // The state was updated in place and is worthless now; the version it belonged to is on disk.
  auto restored = LoadFragment(*services_.store, engine_->delta_pulls(), lane.state.epoch, lane.state.layout,
                               lane.state.version);
  if (!restored.ok()) {
    lane.halted = true;
    services_.book->SetFault(absl::StrFormat(
        "version %d of fragment %d cannot be read back after an overflow: %s; restart the coordinator",
        lane.state.version.value(), lane.state.layout.id.value(), std::string(restored.status().message())));
    return false;
  }
  lane.state.state = std::move(restored->state);
  const auto largest = std::ranges::max_element(contributions, {}, &Contribution::norm);
  Effects effects;
  services_.book->Exclude(
      lane.state.layout.id, *largest,
      absl::StrFormat(
          "the merge overflows (%s); the contribution of worker '%s', the largest with norm %g, is left "
          "out",
          std::string(why.message()), largest->key.worker, largest->norm),
      effects);
  (void)services_.outbox->Send(effects);
  return true;
}

void RoundDriver::Prepare(Lane& lane, std::vector<Contribution> contributions, std::vector<float> weights,
                          ComputedVersion computed) {
  Pending& pending = lane.pending.emplace();
  RoundRecord& record = pending.record;
  record.epoch = lane.state.epoch;
  record.fragment = lane.state.layout.id;
  record.version = Next(lane.state.version);
  record.outer_steps = lane.state.outer_steps + 1;
  record.config_version = lane.config->version;
  record.outer = lane.config->run.outer;
  record.merge = lane.config->run.merge;
  record.committed_tokens = services_.book->TokensAfter(record.fragment, contributions);
  record.closed_unix_ns = services_.clock->WallNow().time_since_epoch().count();
  record.close_reason = lane.close_reason;
  record.noise_multiplier = lane.config->run.privacy.noisy() ? lane.config->run.privacy.noise_multiplier : 0;
  record.audits = services_.book->Audit(record.fragment, contributions, lane.findings);
  record.parameters = computed.hashes.parameters;
  record.state = computed.hashes.state;
  record.published = computed.hashes.published;
  record.weights = std::move(weights);
  pending.partitions = services_.book->PartitionsAfter(record.fragment, contributions);
  record.contributions = std::move(contributions);
  pending.computed = std::move(computed);
  pending.computed.snapshot->committed_tokens = record.committed_tokens;
  pending.closed_at = lane.closed_at;
}

void RoundDriver::Commit(Lane& lane) {
  Pending& pending = *lane.pending;
  const MonoTime started = services_.clock->Now();
  // Before the head moves: who is in the middle of sending something late may go on with it. The next round
  // may take what is later than this one does, and so may those of other fragments.
  services_.store->KeepLate(services_.book->StalenessLimit());
  services_.budget->SetCapacity(services_.book->ContributionBudget());
  const absl::Status committed = services_.store->CommitRound(pending.record, pending.partitions);
  if (!committed.ok()) {
    ReportStorage(
        lane, absl::StrFormat("version %d of fragment %d is computed, but cannot be committed: %s; it is "
                              "kept in memory and tried again every %.1f s",
                              pending.record.version.value(), pending.record.fragment.value(),
                              std::string(committed.message()), ToSeconds(services_.options.storage_retry)));
    lane.retry_at = started + services_.options.storage_retry;
    return;
  }
  services_.observer->OnCommitSeconds(ToSeconds(services_.clock->Now() - started));
  const Pending done = *std::exchange(lane.pending, std::nullopt);
  Published(lane, done);
}

void RoundDriver::Published(Lane& lane, const Pending& pending) {
  ReportStorage(lane, "");
  lane.state.theta = pending.computed.theta;
  lane.state.published = pending.computed.published;
  lane.state.version = pending.record.version;
  lane.state.outer_steps = pending.record.outer_steps;
  lane.closing = false;
  const MonoTime now = services_.clock->Now();
  Effects effects;
  const std::vector<FragmentId> finished =
      services_.book->Committed(pending.record, ToSeconds(now - pending.closed_at), now, effects);
  FaultPoint("publish.begin");
  services_.board->Publish(pending.computed.snapshot);
  FaultPoint("publish.done");
  for (const FragmentId fragment : finished) services_.board->Finish(fragment);
  Store(lane, pending.computed.snapshot);
  (void)services_.outbox->Send(effects);
}

void RoundDriver::Store(Lane& lane, const SnapshotPtr& published) {
  lane.storing = true;
  storer_.Store(&lane.state, published, [this, &lane] {
    const FragmentId fragment = lane.state.layout.id;
    const Version version = lane.state.version;
    lane.storing = false;  // from here on the lane may be gone
    Wake();
    if (on_stored_) on_stored_(fragment, version);
  });
}

void RoundDriver::ReportStorage(const Lane& lane, const std::string& error) {
  Effects effects;
  services_.book->SetStorageError(absl::StrFormat("rounds of fragment %d", lane.state.layout.id.value()),
                                  error, services_.clock->Now(), effects);
  (void)services_.outbox->Send(effects);
}

}  // namespace atoll
