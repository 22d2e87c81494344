#include "server/admin/checkpoint_keeper.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "atoll/version.h"
#include "common/human.h"
#include "common/status.h"
#include "server/admin/checkpoint_names.h"
#include "server/admin/restore.h"

namespace atl {
namespace {

// Ends the name of an automatic checkpoint that rotation leaves alone, whatever the configuration says later.
constexpr char kForGood[] = "-kept";

CheckpointView ViewOf(const CheckpointEntry& entry) {
  const CheckpointManifest& manifest = entry.manifest;
  return {.name = manifest.name,
          .epoch = manifest.epoch,
          .versions = manifest.versions,
          .committed_tokens = manifest.committed_tokens,
          .created_unix_ns = manifest.created_unix_ns,
          .bytes = entry.bytes,
          .shared_bytes = entry.shared_bytes,
          .automatic = manifest.automatic,
          .path = entry.path,
          .damage = entry.damage};
}

/// Named now, not only when somebody recomputes the version.
std::string LeftOutText(const std::vector<std::string>& left_out) {
  if (left_out.empty()) return "";
  return absl::StrFormat(
      "; without %d damaged payload(s) of versions that are stored, %s first: only 'verify' misses them",
      left_out.size(), left_out.front());
}

}  // namespace

CheckpointKeeper::CheckpointKeeper(const CoordinatorContext& context, RoundDriver* driver)
    : context_(context), driver_(driver), queue_("checkpoints") {}

void CheckpointKeeper::Announce(EventKind kind, Version version, const std::string& message) {
  Effects effects;
  effects.Event(kind, "", message);
  effects.events.back().version = version;
  (void)context_.effect_executor->Execute(effects);
}

absl::StatusOr<CheckpointView> CheckpointKeeper::Make(const std::string& name, bool automatic) {
  const MonoTime started = context_.clock->Now();
  CheckpointRequest request{.name = name, .automatic = automatic, .software_version = std::string(kVersion)};
  request.created_unix_ns = context_.clock->WallNow().time_since_epoch().count();
  auto made = context_.store->CreateCheckpoint(request);
  if (!made.ok()) {
    const absl::Status& why = made.status();
    const bool asked_wrongly =
        absl::IsInvalidArgument(why) || absl::IsAlreadyExists(why) || absl::IsFailedPrecondition(why);
    if (asked_wrongly && !automatic) return why;
    Announce(EventKind::kCheckpointFailed, Version(0),
             absl::StrFormat("checkpoint '%s' could not be made: %s", name, std::string(why.message())));
    return why;
  }
  Announce(EventKind::kCheckpointCreated, made->manifest.versions.front(),
           absl::StrFormat("checkpoint '%s' of version %d: %s, of which %s shared, in %.1f s%s", name,
                           made->manifest.versions.front().value(), HumanBytes(made->bytes),
                           HumanBytes(made->shared_bytes), ToSeconds(context_.clock->Now() - started),
                           LeftOutText(made->left_out)));
  context_.observer->OnNewestCheckpoint(made->manifest.created_unix_ns);
  return ViewOf(*made);
}

absl::StatusOr<CheckpointView> CheckpointKeeper::Create(const std::string& name) {
  MutexLock alone(&mutex_);
  if (!name.empty()) return Make(name, /*automatic=*/false);
  const auto fragments = context_.state->views().numbers().fragments;
  const uint64_t version = fragments.empty() ? 0 : fragments.front().version.value();
  const auto now = absl::FromUnixNanos(context_.clock->WallNow().time_since_epoch().count());
  return Make(absl::StrFormat("v%d-%s", version, absl::FormatTime("%Y%m%d-%H%M%S", now, absl::UTCTimeZone())),
              /*automatic=*/false);
}

absl::StatusOr<std::vector<CheckpointView>> CheckpointKeeper::List(bool check) {
  ATOLL_ASSIGN_OR_RETURN(const std::vector<CheckpointEntry> entries, context_.store->ListCheckpoints(check));
  std::vector<CheckpointView> views;
  for (const CheckpointEntry& entry : entries) views.push_back(ViewOf(entry));
  return views;
}

void CheckpointKeeper::ReportNewest() const {
  const auto entries = context_.store->ListCheckpoints(false);
  if (!entries.ok()) return;
  int64_t newest = 0;
  for (const CheckpointEntry& entry : *entries) newest = std::max(newest, entry.manifest.created_unix_ns);
  context_.observer->OnNewestCheckpoint(newest);
}

absl::StatusOr<RestoreResult> CheckpointKeeper::Restore(const std::string& name) {
  MutexLock alone(&mutex_);
  auto restored = RestoreRun(context_, *driver_, name);
  if (restored.ok()) return restored;
  return NameCheckpoints(*context_.store, name, restored.status());
}

absl::Status CheckpointKeeper::Delete(const std::string& name) {
  MutexLock alone(&mutex_);
  ATOLL_RETURN_IF_ERROR(NameCheckpoints(*context_.store, name, context_.store->DeleteCheckpoint(name)));
  Announce(EventKind::kCheckpointDeleted, Version(0), absl::StrFormat("checkpoint '%s' was deleted", name));
  ReportNewest();
  return absl::OkStatus();
}

void CheckpointKeeper::VersionStored(FragmentId fragment, Version version) {
  const uint32_t every = context_.state->settings().config()->run.checkpoint_every;
  if (every == 0 || fragment != FragmentId(0) || version.value() == 0 || version.value() % every != 0) return;
  // A disk that takes longer for a checkpoint than workers for its rounds must not pile them up.
  if (queue_.pending() > 0) return;
  (void)queue_.Post([this, version] { MakeAutomatic(version); });
}

void CheckpointKeeper::MakeAutomatic(Version version) {
  MutexLock alone(&mutex_);
  const ConfigPtr config = context_.state->settings().config();
  const RunOptions& run = config->run;
  const uint64_t number = version.value() / std::max(1U, run.checkpoint_every);
  const bool for_good = run.checkpoint_keep_every > 0 && number % run.checkpoint_keep_every == 0;
  const absl::StatusOr<std::string> name = AutomaticName(version, for_good);
  if (!name.ok()) {
    Announce(EventKind::kCheckpointFailed, version,
             absl::StrFormat("no automatic checkpoint was made: the existing ones cannot be listed: %s",
                             std::string(name.status().message())));
    return;
  }
  if (!Make(*name, /*automatic=*/true).ok()) return;  // announced
  const absl::Status rotated = Rotate();
  if (!rotated.ok()) {
    Announce(EventKind::kCheckpointFailed, version,
             absl::StrFormat("old checkpoints could not be removed: %s", std::string(rotated.message())));
  }
}

absl::StatusOr<std::string> CheckpointKeeper::AutomaticName(Version version, bool for_good) {
  ATOLL_ASSIGN_OR_RETURN(const std::vector<CheckpointEntry> entries, context_.store->ListCheckpoints(false));
  const auto taken = [&entries](const std::string& name) {
    return std::ranges::any_of(entries, [&name](const CheckpointEntry& entry) {
      return entry.manifest.name == name && !entry.manifest.automatic;
    });
  };
  std::string name = absl::StrFormat("auto-v%d%s", version.value(), for_good ? kForGood : "");
  for (int number = 2; taken(name); ++number) {
    name = absl::StrFormat("auto-v%d-%d%s", version.value(), number, for_good ? kForGood : "");
  }
  return name;
}

absl::Status CheckpointKeeper::Rotate() {
  ATOLL_ASSIGN_OR_RETURN(std::vector<CheckpointEntry> entries, context_.store->ListCheckpoints(false));
  std::erase_if(entries, [](const CheckpointEntry& entry) {
    return !entry.manifest.automatic || absl::EndsWith(entry.manifest.name, kForGood);
  });
  const uint32_t keep = std::max(1U, context_.state->settings().config()->run.checkpoint_keep);
  for (size_t i = 0; i + keep < entries.size(); ++i) {
    ATOLL_RETURN_IF_ERROR(context_.store->DeleteCheckpoint(entries[i].manifest.name));
  }
  return absl::OkStatus();
}

}  // namespace atl
