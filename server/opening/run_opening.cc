#include "server/opening/run_opening.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/digest.h"
#include "common/human.h"
#include "common/status.h"
#include "core/codec.h"
#include "core/model_check.h"
#include "core/model_shape.h"
#include "core/outer_optimizer.h"
#include "server/members/worker_count.h"
#include "server/opening/import_seed.h"
#include "server/opening/new_epoch.h"
#include "server/opening/start_config.h"
#include "server/rounds/recover_fragments.h"
#include "storage/committed_tokens.h"

namespace atl {
namespace {

absl::Status Changed(std::string_view field, const std::string& recorded, const std::string& now) {
  return absl::FailedPreconditionError(absl::StrFormat(
      "%s is fixed when a run begins: this run has %s, the configuration says %s; put it back, or "
      "start a new run in an empty data directory",
      std::string(field), recorded, now));
}

// Values as a file has them.
std::string ValueText(const std::string& text) { return "'" + text + "'"; }
std::string ValueText(uint32_t number) { return std::to_string(number); }
std::string ValueText(uint64_t number) { return std::to_string(number); }
std::string ValueText(double number) { return absl::StrFormat("%g", number); }
std::string ValueText(CodecKind codec) { return std::string(CodecName(codec)); }
std::string ValueText(DataMode mode) { return mode == DataMode::kShared ? "shared" : "local"; }
std::string ValueText(bool value) { return value ? "true" : "false"; }
std::string ValueText(SequenceBounds bounds) {
  return bounds == SequenceBounds::kWithinFiles ? "within_files" : "across_files";
}
std::string ValueText(SyncMode mode) { return mode == SyncMode::kBlocking ? "blocking" : "overlapped"; }
std::string ValueText(FragmentPattern pattern) {
  return pattern == FragmentPattern::kPacked ? "packed" : "strided";
}
std::string ValueText(OuterOptimizerKind optimizer) {
  switch (optimizer) {
    case OuterOptimizerKind::kNesterov:
      return "nesterov";
    case OuterOptimizerKind::kSgd:
      return "sgd";
    case OuterOptimizerKind::kAdam:
      return "adam";
    case OuterOptimizerKind::kDelayedNesterov:
      return "delayed_nesterov";
  }
  return "unknown";
}

template <typename T>
absl::Status Same(std::string_view field, const T& recorded, const T& now) {
  if (recorded == now) return absl::OkStatus();
  return Changed(field, ValueText(recorded), ValueText(now));
}

absl::Status SameModel(const ModelOptions& recorded, const ModelOptions& now) {
  const auto before = ShapeOf(recorded);
  const auto after = ShapeOf(now);
  ATOLL_RETURN_IF_ERROR(Same("model", std::string(before->family()), std::string(after->family())));
  const std::vector<ModelSetting> settled = before->FixedSettings();
  const std::vector<ModelSetting> given = after->FixedSettings();
  for (size_t i = 0; i < settled.size(); ++i) {
    if (settled[i].value == given[i].value) continue;
    return Changed(absl::StrCat(before->section(), ".", settled[i].setting), settled[i].value,
                   given[i].value);
  }
  return absl::OkStatus();
}

/// First of all: what else differs between two runs is no news.
absl::Status SameRun(const std::string& recorded, const std::string& now) {
  if (recorded == now) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrFormat(
      "run.name: the data directory is that of run '%s', and the configuration is of run '%s'. Nothing was "
      "changed. Give the data directory of '%s' with --data-dir (an empty one begins a new run), or the "
      "configuration of '%s'",
      recorded, now, now, recorded));
}

std::string DeltaName(const RunOptions& run) {
  return run.pull_delta ? std::string(CodecName(*run.pull_delta)) : "none";
}

ConfigPtr SnapshotOf(const ConfigEntry& entry, const RunOptions& run) {
  return std::make_shared<const ConfigSnapshot>(
      ConfigSnapshot{.version = entry.version, .bytes = entry.bytes, .run = run});
}

StartConfig FileOf(const CoordinatorOptions& options) {
  return {.bytes = options.config_bytes,
          .run = options.run,
          .staleness_open = options.staleness_open,
          .notes = {}};
}

/// A remembered number that is too large is lowered (AdminControl::WantedWorkers); one that was just typed is
/// a mistake to tell.
absl::Status CheckLaunched(const CoordinatorOptions& options, const CoordinatorDeps& deps,
                           const RunOptions& run) {
  if (deps.launcher == nullptr) return absl::OkStatus();
  const std::string_view field = "--launch-workers (default: run.workers)";
  ATOLL_RETURN_IF_ERROR(CheckMostWorkers(options.launch_workers, run, field));
  return CheckPartsOfData(options.launch_workers, /*others=*/0, run, field);
}

absl::StatusOr<OpenedRun> BeginRun(const CoordinatorOptions& options, const CoordinatorDeps& deps) {
  OpenedRun opened;
  StartConfig start = FileOf(options);
  if (deps.config_codec != nullptr) {
    ATOLL_ASSIGN_OR_RETURN(start, ForNewRun(start, *deps.config_codec));
  }
  ATOLL_RETURN_IF_ERROR(CheckLaunched(options, deps, start.run));
  RunIdentity& identity = opened.recovery.identity;
  identity.run_id = ToHex(RandomBytes(8));
  identity.name = options.run.name;
  identity.epoch = Epoch(RandomNonZero64());
  identity.created_unix_ns = deps.clock->WallNow().time_since_epoch().count();
  identity.shards = options.run.shards;
  identity.chunk_elements = options.chunk_elements;
  const ConfigEntry config{.version = 1,
                           .recorded_unix_ns = identity.created_unix_ns,
                           .author = std::string(kStartAuthor),
                           .bytes = start.bytes};
  ATOLL_RETURN_IF_ERROR(deps.store->CreateRun(identity, config));
  opened.recovery.configs.push_back(config);
  opened.config = SnapshotOf(config, start.run);
  deps.log.Info("a new run begins; waiting for a worker to seed it",
                {{"run", identity.name}, {"id", identity.run_id}});
  return opened;
}

absl::StatusOr<RunOptions> ReadRecorded(const ConfigCodec& codec, const ConfigEntry& entry) {
  auto recorded = codec.Parse(entry.bytes);
  if (recorded.ok()) return recorded;
  return absl::DataLossError(
      absl::StrFormat("version %d of the configuration, recorded with the run, cannot be read: %s",
                      entry.version, std::string(recorded.status().message())));
}

/// The configuration of the last start that brought one: what an operator set since is not in it.
const ConfigEntry& LastStarted(const std::vector<ConfigEntry>& configs) {
  for (auto it = configs.rbegin(); it != configs.rend(); ++it) {
    if (it->author == kStartAuthor) return *it;
  }
  return configs.front();
}

std::string ChangesText(const ConfigCodec* codec, const ConfigEntry& before, const ConfigEntry& after) {
  if (codec == nullptr) return "not known";
  const auto changes = codec->Diff(before.bytes, after.bytes);
  if (!changes.ok()) return std::string(changes.status().message());
  std::vector<std::string> texts;
  for (const ConfigChange& change : *changes) texts.push_back(ConfigChangeText(change));
  return absl::StrJoin(texts, ", ");
}

/// With a file that has not changed, or none. What was set since may be less than the flag asks for, and a
/// supervisor repeats the flag: the launcher is asked for fewer then. By the file itself it is a mistake.
absl::Status CheckLaunchedOfOldFile(const CoordinatorOptions& options, const CoordinatorDeps& deps,
                                    const OpenedRun& opened) {
  if (deps.config_codec == nullptr) return CheckLaunched(options, deps, opened.config->run);
  ATOLL_ASSIGN_OR_RETURN(const RunOptions last,
                         ReadRecorded(*deps.config_codec, LastStarted(opened.recovery.configs)));
  return CheckLaunched(options, deps, last);
}

absl::Status AdoptConfig(const CoordinatorOptions& options, const CoordinatorDeps& deps, OpenedRun& opened) {
  const ConfigEntry newest = opened.recovery.configs.back();
  ATOLL_RETURN_IF_ERROR(SameRun(opened.recovery.identity.name, options.run.name));
  ATOLL_RETURN_IF_ERROR(Same("checkpoint.shards", opened.recovery.identity.shards, options.run.shards));
  opened.config = SnapshotOf(newest, options.run);
  if (newest.bytes == options.config_bytes) return absl::OkStatus();
  StartConfig start = FileOf(options);
  if (deps.config_codec != nullptr) {
    ATOLL_ASSIGN_OR_RETURN(const RunOptions recorded, ReadRecorded(*deps.config_codec, newest));
    const ConfigEntry& last = LastStarted(opened.recovery.configs);
    ATOLL_ASSIGN_OR_RETURN(const bool same, IsFileOfLastStart(start, *deps.config_codec, last.bytes));
    // A supervisor starts the coordinator with the file that it was begun with: what was set since stays.
    if (same) {
      opened.config = SnapshotOf(newest, recorded);
      if (opened.recovery.configs.size() > 1) {
        deps.log.Info("the file has not changed: the configuration stays as it was set last",
                      {{"version", newest.version}, {"author", newest.author}});
      }
      return absl::OkStatus();
    }
    BegunRun run{.recorded = recorded, .last_start = recorded, .committed_tokens = std::nullopt};
    ATOLL_ASSIGN_OR_RETURN(run.last_start, ReadRecorded(*deps.config_codec, last));
    // What cannot change comes before the rounds that are left: a file of another run has others, too.
    ATOLL_ASSIGN_OR_RETURN(const StartConfig settled, ForBegunRun(start, *deps.config_codec, run));
    ATOLL_RETURN_IF_ERROR(CheckSettled(recorded, settled.run));
    if (!opened.recovery.rounds.empty()) run.committed_tokens = CommittedTokens(opened.recovery.rounds);
    ATOLL_ASSIGN_OR_RETURN(start, ForBegunRun(start, *deps.config_codec, run));
    if (start.bytes == newest.bytes) {
      opened.config = SnapshotOf(newest, recorded);
      return absl::OkStatus();
    }
    ATOLL_ASSIGN_OR_RETURN(const std::vector<ConfigChange> taken_back,
                           TakenBack(*deps.config_codec, last.bytes, newest.bytes, start.bytes));
    if (!taken_back.empty()) start.notes.push_back(TakenBackNote(taken_back));
  }
  // Before it is recorded: a start that is refused takes nothing back.
  ATOLL_RETURN_IF_ERROR(CheckLaunched(options, deps, start.run));
  const ConfigEntry config{.version = newest.version + 1,
                           .recorded_unix_ns = deps.clock->WallNow().time_since_epoch().count(),
                           .author = std::string(kStartAuthor),
                           .bytes = start.bytes};
  ATOLL_RETURN_IF_ERROR(deps.store->PutConfig(config));
  opened.config = SnapshotOf(config, start.run);
  opened.recovery.configs.push_back(config);
  const std::string changes = ChangesText(deps.config_codec, newest, config);
  deps.log.Info("the configuration changed; it is in force from the next round on",
                {{"version", config.version}, {"changes", changes}});
  for (const std::string& note : start.notes) deps.log.Warning(note);
  start.notes.insert(start.notes.begin(), changes);
  opened.config_changed =
      absl::StrFormat("configuration version %d by the file, in force from the next round: %s",
                      config.version, absl::StrJoin(start.notes, "; "));
  return absl::OkStatus();
}

void ReportInterruptedRestore(const Recovery& recovery, const Logger& log) {
  if (!recovery.interrupted_restore) return;
  const InterruptedRestore& restore = *recovery.interrupted_restore;
  const LogFields fields = {{"checkpoint", restore.checkpoint},
                            {"version", recovery.fragments.front().head.value()}};
  if (restore.done) {
    log.Warning(
        "the coordinator ended right after a restore, which is complete: the run goes on from the "
        "checkpoint; there is nothing to do",
        fields);
    return;
  }
  log.Warning(
      absl::StrFormat(
          "the coordinator ended in the middle of a restore, which had changed nothing: the run goes on "
          "as it was; to restore it, call `atollctl checkpoint restore %s` again",
          restore.checkpoint),
      fields);
}

/// No more workers are waited for than there will be.
ConfigPtr OfOpenRound(const ConfigSnapshot& recorded, const RunOptions& now) {
  ConfigSnapshot config = recorded;
  config.run.round.start_workers = std::min(config.run.round.start_workers, now.round.start_workers);
  return std::make_shared<const ConfigSnapshot>(std::move(config));
}

/// Without a codec only the newest can be read; it stands in for the others.
absl::Status ReadRoundConfigs(const CoordinatorDeps& deps, OpenedRun& opened) {
  const uint64_t newest = opened.config->version;
  uint64_t oldest = newest;
  for (const FragmentRecovery& fragment : opened.recovery.fragments) {
    if (deps.config_codec != nullptr) oldest = std::min(oldest, fragment.config_version);
  }
  for (uint64_t version = oldest; version < newest; ++version) {
    const ConfigEntry& entry = opened.recovery.configs[version - 1];
    ATOLL_ASSIGN_OR_RETURN(const RunOptions run, ReadRecorded(*deps.config_codec, entry));
    opened.earlier_configs.push_back(SnapshotOf(entry, run));
  }
  for (const FragmentRecovery& fragment : opened.recovery.fragments) {
    const bool earlier = fragment.config_version >= oldest && fragment.config_version < newest;
    opened.round_configs.push_back(
        earlier ? OfOpenRound(*opened.earlier_configs[fragment.config_version - oldest], opened.config->run)
                : opened.config);
  }
  return absl::OkStatus();
}

absl::Status Recover(const CoordinatorDeps& deps, MergeEngine& engine, OpenedRun& opened) {
  const Recovery& recovery = opened.recovery;
  ATOLL_ASSIGN_OR_RETURN(opened.layouts,
                         PlanFragments(*recovery.manifest, static_cast<uint32_t>(recovery.fragments.size()),
                                       opened.config->run.sync.pattern));
  ATOLL_ASSIGN_OR_RETURN(opened.fragments, RecoverFragments(*deps.store, recovery, opened.layouts, engine));
  for (const FragmentRecovery& found : recovery.fragments) {
    deps.log.Info("fragment recovered", {{"fragment", found.fragment.value()},
                                         {"version", found.head.value()},
                                         {"replayed_rounds", found.to_replay.size()},
                                         {"accepted_contributions", found.accepted.size()}});
  }
  return absl::OkStatus();
}

/// The directory is a checkpoint, brought from elsewhere perhaps, while the run that it was made of may go on
/// there: this one leaves its epoch before anything else.
absl::Status LeaveOldEpoch(const CoordinatorDeps& deps, MergeEngine& engine, OpenedRun& opened) {
  Recovery& recovery = opened.recovery;
  std::vector<Version> heads;
  for (const FragmentRecovery& fragment : recovery.fragments) heads.push_back(fragment.head);
  const EpochContents contents{
      .committed_tokens = CommittedTokens(recovery.rounds),
      .partitions = recovery.partitions,
      .reason = absl::StrFormat("restored from checkpoint '%s'", recovery.checkpoint->name)};
  EpochStart start = StartEpoch(opened.fragments, heads, contents, *opened.config,
                                deps.clock->WallNow().time_since_epoch().count(), engine);
  // No worker has joined this epoch yet: members at the time of the checkpoint have no claim on their
  // name. Stored with the epoch, because only the first start on this directory knows that it is a
  // checkpoint.
  for (WorkerEntry& worker : recovery.workers) worker.departed = true;
  start.workers = recovery.workers;
  ATOLL_RETURN_IF_ERROR(deps.store->BeginEpoch(start));
  recovery.identity.epoch = start.epoch;
  for (FragmentRecovery& fragment : recovery.fragments) {
    const RoundRecord& record = start.records[fragment.fragment.value()];
    fragment.stored = fragment.head = record.version;
    fragment.config_version = opened.config->version;
    fragment.to_replay.clear();
    fragment.accepted.clear();
    recovery.rounds.push_back(record);
  }
  std::ranges::stable_sort(recovery.rounds, {},
                           [](const RoundRecord& r) { return std::pair(r.fragment, r.version); });
  deps.log.Info(
      "the data directory is a checkpoint; the run goes on from it under a new epoch",
      {{"checkpoint", recovery.checkpoint->name}, {"version", start.records.front().version.value()}});
  return absl::OkStatus();
}

FragmentRecovery AtVersionZero(FragmentId fragment) {
  return {.fragment = fragment, .stored = Version(0), .head = Version(0), .to_replay = {}, .accepted = {}};
}

/// Seeds the run with a file that was imported. Without one nothing happens.
absl::Status ImportSeed(const CoordinatorOptions& options, const CoordinatorDeps& deps,
                        std::optional<ImportedSeed> seed, OpenedRun& opened) {
  if (!seed) return absl::OkStatus();
  const Manifest& manifest = seed->manifest;
  std::vector<TensorBuffer>& buffers = seed->buffers;
  opened.layouts = std::move(seed->layouts);
  const size_t vectors = OuterStateVectors(options.run.outer.optimizer);
  std::vector<FragmentTensorsView> tensors;
  for (size_t i = 0; i < opened.layouts.size(); ++i) {
    FragmentState& state = opened.fragments.emplace_back();
    state.epoch = opened.recovery.identity.epoch;
    state.layout = opened.layouts[i];
    state.theta = std::make_shared<TensorBuffer>(std::move(buffers[i]));
    for (size_t v = 0; v < vectors; ++v) state.state.push_back(TensorBuffer::Zeros(state.layout.elements));
    if (options.run.pull_delta) state.published = state.theta;
    tensors.push_back(state.view());
    opened.recovery.fragments.push_back(AtVersionZero(state.layout.id));
  }
  ATOLL_RETURN_IF_ERROR(deps.store->Seed(manifest, opened.layouts, tensors));
  opened.recovery.manifest = manifest;
  opened.round_configs.assign(opened.layouts.size(), opened.config);
  deps.log.Info("the run is seeded from a file",
                {{"file", options.import_path}, {"parameters", manifest.elements()}});
  return absl::OkStatus();
}

/// A worker would seed it with other parameters, and nobody would notice.
absl::Status CheckImportEnded(const Recovery& recovery, const std::string& directory) {
  if (recovery.interrupted_import.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrFormat(
      "the import of %s into %s was interrupted: the run has no parameters. Start it with --import again, or "
      "delete the data directory to begin another run",
      recovery.interrupted_import, directory));
}

}  // namespace

absl::Status CheckSettled(const RunOptions& recorded, const RunOptions& now) {
  ATOLL_RETURN_IF_ERROR(Same("run.name", recorded.name, now.name));
  // With other data, samples are trained twice; with another noise, what was promised of the run is not true.
  ATOLL_RETURN_IF_ERROR(Same("run.seed", recorded.seed, now.seed));
  ATOLL_RETURN_IF_ERROR(Same("privacy.clip_norm", recorded.privacy.clip_norm, now.privacy.clip_norm));
  ATOLL_RETURN_IF_ERROR(
      Same("privacy.noise_multiplier", recorded.privacy.noise_multiplier, now.privacy.noise_multiplier));
  ATOLL_RETURN_IF_ERROR(SameModel(recorded.model, now.model));
  ATOLL_RETURN_IF_ERROR(Same("data.tokenizer", recorded.data.tokenizer, now.data.tokenizer));
  ATOLL_RETURN_IF_ERROR(Same("data.mode", recorded.data.mode, now.data.mode));
  ATOLL_RETURN_IF_ERROR(Same("data.partitions", recorded.data.partitions, now.data.partitions));
  ATOLL_RETURN_IF_ERROR(Same("data.sequences", recorded.data.sequences, now.data.sequences));
  ATOLL_RETURN_IF_ERROR(
      Same("data.isolate_documents", recorded.data.isolate_documents, now.data.isolate_documents));
  ATOLL_RETURN_IF_ERROR(Same("outer.optimizer", recorded.outer.optimizer, now.outer.optimizer));
  ATOLL_RETURN_IF_ERROR(Same("codec.pull", recorded.pull_codec, now.pull_codec));
  ATOLL_RETURN_IF_ERROR(Same("sync.mode", recorded.sync.mode, now.sync.mode));
  ATOLL_RETURN_IF_ERROR(Same("sync.fragments", recorded.sync.fragments, now.sync.fragments));
  ATOLL_RETURN_IF_ERROR(Same("sync.pattern", recorded.sync.pattern, now.sync.pattern));
  ATOLL_RETURN_IF_ERROR(Same("codec.pull_delta", DeltaName(recorded), DeltaName(now)));
  return Same("checkpoint.shards", recorded.shards, now.shards);
}

absl::StatusOr<OpenedRun> OpenRun(const CoordinatorOptions& options, const CoordinatorDeps& deps,
                                  MergeEngine& engine) {
  ATOLL_ASSIGN_OR_RETURN(std::optional<Recovery> recovery, deps.store->Recover());
  const bool seeded = recovery && recovery->manifest;
  std::optional<ImportedSeed> seed;
  if (!seeded) {
    ATOLL_ASSIGN_OR_RETURN(seed, ReadImport(options));
    if (seed) ATOLL_RETURN_IF_ERROR(deps.store->NoteImport(options.import_path));
  }
  if (!seed && recovery) ATOLL_RETURN_IF_ERROR(CheckImportEnded(*recovery, options.data_directory));
  if (!recovery) {
    ATOLL_ASSIGN_OR_RETURN(OpenedRun begun, BeginRun(options, deps));
    ATOLL_RETURN_IF_ERROR(ImportSeed(options, deps, std::move(seed), begun));
    return begun;
  }
  // Before the configuration is recorded.
  if (seeded) {
    ATOLL_RETURN_IF_ERROR(CheckParameters(options.run.model, *recovery->manifest));
    ATOLL_RETURN_IF_ERROR(CheckAveragedTensors(options.run, *recovery->manifest));
  }
  OpenedRun opened;
  opened.recovery = *std::move(recovery);
  ATOLL_RETURN_IF_ERROR(AdoptConfig(options, deps, opened));
  ATOLL_RETURN_IF_ERROR(CheckLaunchedOfOldFile(options, deps, opened));
  if (!opened.recovery.manifest) {
    ATOLL_RETURN_IF_ERROR(ImportSeed(options, deps, std::move(seed), opened));
    return opened;
  }
  ATOLL_RETURN_IF_ERROR(Recover(deps, engine, opened));
  ReportInterruptedRestore(opened.recovery, deps.log);
  if (opened.recovery.checkpoint) ATOLL_RETURN_IF_ERROR(LeaveOldEpoch(deps, engine, opened));
  ATOLL_RETURN_IF_ERROR(ReadRoundConfigs(deps, opened));
  return opened;
}

}  // namespace atl
