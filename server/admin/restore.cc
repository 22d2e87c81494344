#include "server/admin/restore.h"

#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/status.h"
#include "core/manifest.h"
#include "server/opening/new_epoch.h"
#include "server/rounds/recover_fragments.h"
#include "server/rounds/round_driver.h"
#include "storage/committed_tokens.h"

namespace atl {
namespace {

// For an acceptance in flight to end, and for the version writer to finish the version it is writing.
constexpr Duration kTimeout = Seconds(60);

/// Nothing is accepted while one of these lives.
class HeldAcceptances {
 public:
  explicit HeldAcceptances(CoordinatorState* state) : state_(state) {
    state_->contributions().HoldAcceptances();
  }
  ~HeldAcceptances() { state_->contributions().ReleaseAcceptances(); }

 private:
  CoordinatorState* const state_;
};

struct Contents {
  std::vector<FragmentState> fragments;
  EpochContents small;
};

absl::StatusOr<Contents> ReadContents(OpenedCheckpoint& checkpoint, FragmentPattern pattern,
                                      MergeEngine& engine) {
  const Recovery& recovery = checkpoint.recovery;
  ATOLL_ASSIGN_OR_RETURN(
      const std::vector<FragmentLayout> layouts,
      PlanFragments(*recovery.manifest, static_cast<uint32_t>(recovery.fragments.size()), pattern));
  Contents contents;
  ATOLL_ASSIGN_OR_RETURN(contents.fragments, RecoverFragments(*checkpoint.source, recovery, layouts, engine));
  contents.small = {.committed_tokens = CommittedTokens(recovery.rounds),
                    .partitions = recovery.partitions,
                    .reason = absl::StrFormat("restored from checkpoint '%s'", checkpoint.manifest.name)};
  return contents;
}

/// With the rounds stopped and no acceptance in flight.
absl::StatusOr<RestoreResult> Replace(const CoordinatorContext& context, RoundDriver& driver,
                                      Contents contents, MergeEngine& engine) {
  std::vector<Version> heads;
  for (const FragmentStatusView& fragment : context.state->views().numbers().fragments)
    heads.push_back(fragment.version);
  std::vector<Version> sources;
  for (const FragmentState& fragment : contents.fragments) sources.push_back(fragment.version);
  const EpochStart start =
      StartEpoch(contents.fragments, heads, contents.small, *context.state->settings().config(),
                 context.clock->WallNow().time_since_epoch().count(), engine);
  ATOLL_RETURN_IF_ERROR(context.store->BeginEpoch(start));
  RestoreResult result{
      .epoch = start.epoch, .versions = {}, .committed_tokens = contents.small.committed_tokens};
  for (const RoundRecord& record : start.records) result.versions.push_back(record.version);
  Effects effects;
  const std::vector<FragmentId> finished =
      context.state->Restored(start, sources, context.clock->Now(), effects);
  effects.Event(
      EventKind::kRunRestored, "",
      absl::StrFormat("%s: its contents are version %d now, after %d tokens; workers join again",
                      contents.small.reason, result.versions.front().value(), result.committed_tokens));
  effects.events.back().version = result.versions.front();
  driver.Adopt(std::move(contents.fragments), result.versions);
  for (const FragmentId fragment : finished) context.published_versions->Finish(fragment);
  (void)context.effect_executor->Execute(effects);
  return result;
}

}  // namespace

absl::Status CheckSameRun(const OpenedCheckpoint& checkpoint, const CoordinatorContext& context) {
  const RunIdentity& identity = checkpoint.recovery.identity;
  if (identity.run_id == context.identity.run_id) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrFormat(
      "checkpoint '%s' is of run %s ('%s'), this is run %s: start a coordinator on a copy of it instead",
      checkpoint.manifest.name, identity.run_id, identity.name, context.identity.run_id));
}

absl::StatusOr<RestoreResult> RestoreRun(const CoordinatorContext& context, RoundDriver& driver,
                                         const std::string& checkpoint) {
  ATOLL_ASSIGN_OR_RETURN(OpenedCheckpoint opened,
                         context.store->OpenCheckpoint(checkpoint, CheckpointUse::kRestore));
  ATOLL_RETURN_IF_ERROR(CheckSameRun(opened, context));
  const ConfigPtr config = context.config();
  MergeEngine engine(1, config->run.pull_codec, config->run.pull_delta);
  ATOLL_ASSIGN_OR_RETURN(Contents contents, ReadContents(opened, config->run.sync.pattern, engine));
  absl::StatusOr<RestoreResult> result = absl::InternalError("the restore did not run");
  const absl::Status paused = driver.WhilePaused(kTimeout, [&] {
    const HeldAcceptances held(context.state);
    const absl::Status quiet = context.state->contributions().AwaitAcceptances(kTimeout);
    result = quiet.ok() ? Replace(context, driver, std::move(contents), engine) : quiet;
  });
  ATOLL_RETURN_IF_ERROR(paused);
  return result;
}

}  // namespace atl
